# The on-phone supervisor: runs one command detached, times it out, writes down how it ended, finds leftovers.
#
#   sh supervisor.sh fence  WORK FENCE           raise the phone's fence
#   sh supervisor.sh start  WORK FENCE TENTHS    run WORK/runs/FENCE/run.sh, for at most TENTHS of a second
#   sh supervisor.sh wait   WORK FENCE SECONDS   block until it has ended; 0 only asks
#   sh supervisor.sh stop   WORK FENCE           end it; its exit record follows
#   sh supervisor.sh clean  WORK FENCE           end all of every run up to FENCE, remove their folders
#
# A last word PART names a further command of the run, in WORK/runs/FENCE/PART. System properties that it sets
# are put back from WORK/properties, NAME=VALUE as it was.
#
# For POSIX sh with the applets of Android 8: mksh as sh, toybox, no GNU options. All paths are absolute.
# Numbers stay below 2^31, which is where mksh's arithmetic ends: hence tenths of a second, not ticks.
#
# A run's folder: run.sh (by the agent), lock (held while the supervisor lives), supervisor and harness ("PID
# BORN BOOT_ID"), stdout, stderr, timed_out, exit (how it ended; there once everything in its session is gone
# and what was set for it is put back). A recorded pid counts only while the process there has the recorded
# start time, in the same boot.

set -u
umask 022
readonly REFUSED=10 MISSING=11 RUNNING=12 LOST=13 UNCLEAN=14
# The watchdog looks at the clock this often, because sleep stands still while the phone is suspended.
readonly NAP_TENTHS=300
readonly PATIENCE_STEPS=20

# A shell that reads this with `.` says where it is; that spares it one process.
self=${BENCHFARM_SELF:-$0} command=$1 work=$2 fence=$3 argument=${4:-0} part=${5:-}
run=$work/runs/$fence${part:+/$part}
boot=unknown
# A virtual phone says in its environment where its own boot id stands.
{ read -r boot <"${BENCHFARM_BOOT_ID:-/proc/sys/kernel/random/boot_id}"; } 2>/dev/null

say() { echo "supervisor: $*" >&2; }

# Sets `tenths`: the phone's own clock, which goes on while it is suspended.
look_at_clock() {
  read -r seconds rest </proc/uptime
  tenths=${seconds#*.}
  tenths=$((${seconds%.*} * 10 + ${tenths%?}))
}

# Sets `held` to the number in file $1, or 0.
number() {
  held=
  { read -r held <"$1"; } 2>/dev/null
  case $held in
  '' | *[!0-9]*) held=0 ;;
  esac
}

# Writes the rest of the arguments to file $1, whole or not at all.
write() {
  file=$1
  shift
  echo "$*" >"$file.new" && mv -f "$file.new" "$file"
}

# Raises the number in file $1 to $2; fails when it is higher already.
raise() {
  {
    flock 9
    number "$1"
    [ "$held" -ge "$2" ] || write "$1" "$2"
  } 9>"$work/lock"
  [ "$held" -le "$2" ]
}

# Sets `mark`: what the environment of our processes carries, unlike that of any other phone's on the same kernel.
find_mark() {
  # Once it is there, it stays.
  [ -s "$work/id" ] || {
    flock 9
    if [ ! -s "$work/id" ]; then
      { read -r uuid </proc/sys/kernel/random/uuid; } 2>/dev/null || uuid=$$-$(date +%s)
      write "$work/id" "$uuid"
    fi
  } 9>"$work/lock"
  read -r mark <"$work/id"
  mark=$mark:
}

# Sets `session` and `born` of live process $1; fails when there is none.
look() {
  line=
  { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
  # The name in brackets may hold anything, a bracket too.
  set -- ${line##*) }
  [ "${1:-Z}" != Z ] || return 1
  session=$4 born=${20:-}
}

# Sets `pid` to the live process that record $1 names; fails when that one is gone.
look_up() {
  pid= was_born= was_boot=
  { read -r pid was_born was_boot <"$1"; } 2>/dev/null
  [ "$was_boot" = "$boot" ] && look "$pid" && [ "$born" = "$was_born" ]
}

# Prints the live processes of session $1, or of several: `1|2`. Shells read files a byte at a time, so it is
# grep that looks at all of them.
in_session() {
  grep -l -E "\\) [A-Za-z] -?[0-9]+ -?[0-9]+ ($1) " /proc/[0-9]*/stat 2>/dev/null | while read -r path; do
    path=${path#/proc/}
    look "${path%/stat}" || continue
    case "|$1|" in *"|$session|"*) echo "${path%/stat}" ;; esac
  done
}

# Prints the processes whose environment holds $1.
marked() {
  grep -l -F "$1" /proc/[0-9]*/environ 2>/dev/null | while read -r path; do
    path=${path#/proc/}
    echo "${path%/environ}"
  done
}

# Prints the processes of the run in folder $1, its supervisor not among them.
of_run() {
  marked "BENCHFARM_MARK=$mark$fence:"
  around "$1"
}

# Prints those of them that the run's folder leads to, whatever became of their environment.
around() {
  look_up "$1/harness" && in_session "$pid"
  for process in /proc/[0-9]*; do
    [ "$process/cwd" -ef "$1" ] && echo "${process#/proc/}"
  done
}

# Prints the folders of runs on that side of this fence: `-le` or `-gt`.
folders() {
  for folder in "$work"/runs/*; do
    case ${folder##*/} in
    *[!0-9]*) ;;
    *) [ "${folder##*/}" "$1" "$fence" ] && echo "$folder" ;;
    esac
  done
}

# Prints all processes of runs up to this fence, their supervisors too, and those whose folder is gone.
leftovers() {
  folders -le | while read -r folder; do
    for part in "$folder" "$folder"/*; do
      [ ! -s "$part/supervisor" ] && [ "$part" != "$folder" ] && continue
      around "$part"
      look_up "$part/supervisor" && in_session "$pid"
    done
  done
  set -- $(folders -gt | while read -r folder; do marked "BENCHFARM_MARK=$mark${folder##*/}:"; done)
  newer=" $* "
  for stray in $(marked "BENCHFARM_MARK=$mark"); do
    case $newer in
    *" $stray "*) ;;
    *) echo "$stray" ;;
    esac
  done
}

# Asks the processes that "$@" prints to end, and kills what is left after two seconds; fails when some live on.
put_down() {
  step=0
  while
    left=$("$@")
    [ -n "$left" ]
  do
    [ "$step" -gt 0 ] || kill -s TERM $left 2>/dev/null
    [ "$step" -lt "$PATIENCE_STEPS" ] || kill -s KILL $left 2>/dev/null
    [ "$step" -lt $((PATIENCE_STEPS * 2)) ] || return 1
    step=$((step + 1))
    sleep 0.1
  done
}

watch() {
  look_at_clock
  deadline=$((tenths + argument))
  while [ "$tenths" -lt "$deadline" ]; do
    left=$((deadline - tenths))
    [ "$left" -lt "$NAP_TENTHS" ] || left=$NAP_TENTHS
    sleep "$((left / 10)).$((left % 10))"
    look_at_clock
  done
  : >"$run/timed_out"
  put_down of_run "$run"
}

# Ends the watchdog. Not by a trap: mksh loses a signal that comes just before it begins to wait.
dismiss() {
  kill -s KILL "$1" 2>/dev/null
  wait "$1" 2>/dev/null
}

# Ends the watchdog's nap in our own session, and what is left in the session of the harness.
end_strays() {
  left=
  for stray in $(in_session "$$|$harness"); do
    [ "$stray" != $$ ] && look "$stray" || continue
    if [ "$session" = "$harness" ]; then left=$stray; else kill -s KILL "$stray" 2>/dev/null; fi
  done
  [ -z "$left" ] || put_down in_session "$harness" || say "some of session $harness live on"
}

# Sets `spent` to what those of our children that are over used of the CPU, in steps of 10 ms on every kernel.
add_up() {
  read -r line <"/proc/$$/stat"
  set -- ${line##*) }
  spent=$((${14} + ${15}))
}

# Puts the phone's clocks and cores back, if controls.sh set any for a run up to this one.
put_back() {
  number "$work/controls"
  [ "$held" = 0 ] || [ "$held" -gt "$fence" ] || sh "$work/controls.sh" restore "$work"
}

record_exit() {
  timed_out=0
  [ ! -e "$run/timed_out" ] || timed_out=1
  for line in "code=$1" "timed_out=$timed_out" "started_s=$2" "ended_s=$3" "cpu_steps=$4" "boot_id=$boot"; do
    echo "$line"
  done >"$run/exit.new"
  # Android 8 has no fsync, and its sync takes no file.
  fsync "$run/exit.new" 2>/dev/null || sync "$run/exit.new" 2>/dev/null
  mv -f "$run/exit.new" "$run/exit"
}

put_properties_back() {
  [ -s "$work/properties" ] || return 0
  while IFS='=' read -r name value; do setprop "$name" "$value"; done <"$work/properties"
  rm -f "$work/properties"
}

# In a session of its own, holding the lock on descriptor 9. It keeps its current folder out of the run's.
supervise() {
  trap '' HUP
  look $$ && echo "$$ $born $boot" >"$run/supervisor"
  # clean raises its number first and looks for us then: one of the two sees the other.
  number "$work/cleaned"
  [ "$held" -lt "$fence" ] || exit "$REFUSED"
  number "$work/fence"
  [ "$held" -le "$fence" ] || exit "$REFUSED"
  find_mark
  add_up
  spent_before=$spent
  read -r started rest </proc/uptime
  # Here setsid does not fork: a background process of a script leads no group.
  BENCHFARM_RUN=$fence BENCHFARM_MARK=$mark$fence: setsid sh "$run/run.sh" \
    </dev/null >"$run/stdout" 2>"$run/stderr" 9>&- &
  harness=$!
  look "$harness" && echo "$harness $born $boot" >"$run/harness"
  # By exec, since a redirection of the function itself would keep copies of the descriptors open.
  (
    exec </dev/null >/dev/null 9>&-
    watch
  ) &
  watchdog=$!
  echo started
  exec >/dev/null
  wait "$harness"
  code=$?
  read -r ended rest </proc/uptime
  add_up
  spent=$((spent - spent_before))
  # After a time-out the watchdog is at work and ends by itself.
  if [ -e "$run/timed_out" ]; then wait "$watchdog"; else dismiss "$watchdog"; fi
  end_strays
  put_back 2>/dev/null
  put_properties_back
  record_exit "$code" "$started" "$ended" "$spent"
}

start() {
  raise "$work/fence" "$fence" || { say "the fence is above $fence"; exit "$REFUSED"; }
  number "$work/cleaned"
  [ "$held" -lt "$fence" ] || { say "run $fence was cleaned up"; exit "$REFUSED"; }
  [ -f "$run/run.sh" ] || { say "no $run/run.sh"; exit "$MISSING"; }
  [ ! -s "$run/supervisor" ] || return 0
  trap '' HUP
  # Ends when the supervisor has closed its output, not when it ends.
  answer=$(setsid sh "$self" supervise "$work" "$fence" "$argument" "$part" </dev/null 2>>"$run/supervisor.log" &)
  [ "$answer" = started ] || { say "not started: see $run/supervisor.log"; exit "$LOST"; }
}

wait_for_end() {
  [ ! -e "$run/exit" ] || return 0
  [ -s "$run/supervisor" ] || exit "$MISSING"
  # Blocks in the kernel, costing the run nothing; the lock is free as soon as the supervisor is gone.
  [ "$argument" = 0 ] || timeout "$argument" flock -s 9 9<"$run/lock"
  [ ! -e "$run/exit" ] || return 0
  flock -n -s 9 9<"$run/lock" || exit "$RUNNING"
  [ -e "$run/exit" ] || exit "$LOST"
}

clean() {
  find_mark
  raise "$work/cleaned" "$fence"
  put_down leftovers || { say "live on: $left"; exit "$UNCLEAN"; }
  put_back || { say "clocks or cores stay as they were set"; exit "$UNCLEAN"; }
  put_properties_back
  folders -le | while read -r folder; do rm -rf "$folder"; done
  [ -z "$(folders -le)" ] || { say "folders stay: $(folders -le)"; exit "$UNCLEAN"; }
}

[ -d "$work/runs" ] || mkdir -p "$work/runs"
case $command in
fence) raise "$work/fence" "$fence" || exit "$REFUSED" ;;
start) start ;;
supervise)
  {
    # Whoever has the lock, or wrote the record, has started it.
    if flock -n 9 && [ ! -s "$run/supervisor" ]; then supervise; else echo started; fi
  } 9>"$run/lock"
  ;;
wait) wait_for_end ;;
stop)
  find_mark
  [ -s "$run/supervisor" ] || exit "$MISSING"
  put_down of_run "$run" || exit "$UNCLEAN"
  ;;
clean) clean ;;
*)
  say "unknown command $command"
  exit 2
  ;;
esac
