# The on-phone supervisor: runs one command detached, times it out, writes down how it ended, finds leftovers.
#
#   sh supervisor.sh fence  WORK FENCE           raise the phone's fence
#   sh supervisor.sh start  WORK FENCE TENTHS    run WORK/runs/FENCE/run.sh, for at most TENTHS of a second
#   sh supervisor.sh sample WORK FENCE PID       print samples of process PID; the supervisor starts it
#   sh supervisor.sh wait   WORK FENCE SECONDS   block until it has ended; 0 only asks
#   sh supervisor.sh stop   WORK FENCE           end it; its exit record follows
#   sh supervisor.sh clean  WORK FENCE           end all of every run up to FENCE, remove their folders
#   sh supervisor.sh reset  WORK FENCE           end all of every run; FENCE takes the place of a number too high
#
# A further word PART names a further command of the run, in WORK/runs/FENCE/PART. System properties that it sets
# are put back from WORK/properties, NAME=VALUE as it was. A last word SECONDS has the run sampled, so often.
#
# Phones get one file, in which processes.sh and sampler.sh stand before this.
#
# For POSIX sh with the applets of Android 8: mksh as sh, toybox, no GNU options. All paths are absolute.
# Numbers stay below 2^31, which is where mksh's arithmetic ends: hence tenths of a second, not ticks.
#
# A run's folder: run.sh (by the agent), lock (held while the supervisor lives), supervisor and harness ("PID
# BORN BOOT_ID"), stdout, stderr, run.trace (samples), timed_out, exit (how it ended; there once everything in
# its session is gone and what was set for it is put back). A recorded pid counts only while the process there
# has the recorded start time, in the same boot.

set -u
umask 022
readonly REFUSED=10 MISSING=11 RUNNING=12 LOST=13 UNCLEAN=14 FULL=15
# The watchdog looks at the clock this often, because sleep stands still while the phone is suspended.
readonly NAP_TENTHS=300
readonly PATIENCE_STEPS=20

# A shell that reads this with `.` says where it is; that spares it one process.
self=${BENCHFARM_SELF:-$0} command=$1 work=$2 fence=$3 argument=${4:-0} part=${5:-} sampling=${6:-}
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
  echo "$*" >"$file.new" && [ -s "$file.new" ] && mv -f "$file.new" "$file"
}

# Raises the number in file $1 to $2; fails when it is higher already, and when a full disk keeps it lower.
raise() {
  {
    flock 9
    number "$1"
    [ "$held" -ge "$2" ] || { write "$1" "$2"; number "$1"; }
  } 9>"$work/lock" 2>/dev/null
  [ "$held" -eq "$2" ]
}

raise_fence() {
  raise "$work/fence" "$fence" && return
  [ "$held" -lt "$fence" ] || { say "the fence is above $fence"; exit "$REFUSED"; }
  say "no room to write down fence $fence"
  exit "$FULL"
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

watch() {
  look_at_clock
  deadline=$((tenths + argument))
  while [ "$tenths" -lt "$deadline" ]; do
    left=$((deadline - tenths))
    [ "$left" -lt "$NAP_TENTHS" ] || left=$NAP_TENTHS
    sleep "$((left / 10)).$((left % 10))"
    look_at_clock
  done
  # Not by `:`, where a folder that is gone would end the shell before it ends the run.
  true >"$run/timed_out"
  put_down of_run "$run"
}

# Ends the watchdog. Not by a trap: mksh loses a signal that comes just before it begins to wait.
dismiss() {
  kill -s KILL "$1" 2>/dev/null
  wait "$1" 2>/dev/null
}

# Starts the sampler of the harness, with its mark; sets `sampler`, its number and its start.
begin_sampling() {
  sampler=
  [ -n "$sampling" ] || return
  echo "trace 1
start $started" >"$run/run.trace"
  # The pipe stays open and empty, and the sampler can wait on it.
  : | BENCHFARM_RUN=$fence BENCHFARM_MARK=$mark$fence: \
    sh "$self" sample "$work" "$fence" "$harness" "$part" "$sampling" >>"$run/run.trace" 9>&- &
  sampler=$!
  look "$sampler"
  sampler_born=$born
}

# Ends it. It may have ended before, and its number be another process's. Nobody waits for it: one that a driver
# holds up dies only when that lets it go.
end_sampling() {
  [ -n "$sampler" ] || return
  look "$sampler" && [ "$born" = "$sampler_born" ] && kill -s KILL "$sampler"
  echo "end $ended" >>"$run/run.trace"
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
  begin_sampling 2>/dev/null
  echo started
  exec >/dev/null
  wait "$harness"
  code=$?
  read -r ended rest </proc/uptime
  add_up
  spent=$((spent - spent_before))
  end_sampling 2>/dev/null
  # After a time-out the watchdog is at work and ends by itself.
  if [ -e "$run/timed_out" ]; then wait "$watchdog"; else dismiss "$watchdog"; fi
  end_strays
  put_back 2>/dev/null
  put_properties_back
  record_exit "$code" "$started" "$ended" "$spent"
}

start() {
  raise_fence
  number "$work/cleaned"
  [ "$held" -lt "$fence" ] || { say "run $fence was cleaned up"; exit "$REFUSED"; }
  [ -f "$run/run.sh" ] || { say "no $run/run.sh"; exit "$MISSING"; }
  [ ! -s "$run/supervisor" ] || return 0
  trap '' HUP
  # Ends when the supervisor has closed its output, not when it ends.
  answer=$(setsid sh "$self" supervise "$work" "$fence" "$argument" "$part" "$sampling" </dev/null 2>>"$run/supervisor.log" &)
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

# None of these runs can start once the number is there.
mark_cleaned() { raise "$work/cleaned" "$fence" || [ "$held" -ge "$fence" ]; }

# Also the folders of runs to come: a run made those, so that the next one takes its files for its own. A newer run
# of another host holds its lock.
remove_folders() {
  for folder in "$work"/runs/*; do
    case ${folder##*/} in *[!0-9]*) continue ;; esac
    [ "${folder##*/}" -le "$fence" ] || [ ! -f "$folder/lock" ] || flock -n -s 9 9<"$folder/lock" || continue
    rm -rf "$folder"
  done
}

clean() {
  find_mark
  mark_cleaned || {
    # What a run wrote is what fills a disk; without that there is room for the number.
    put_down leftovers || { say "live on: $left"; exit "$UNCLEAN"; }
    remove_folders
    mark_cleaned || { say "no room to write down that run $fence is over"; exit "$UNCLEAN"; }
  }
  put_down leftovers || { say "live on: $left"; exit "$UNCLEAN"; }
  put_back || { say "clocks or cores stay as they were set"; exit "$UNCLEAN"; }
  put_properties_back
  remove_folders
  [ -z "$(folders -le)" ] || { say "folders stay: $(folders -le)"; exit "$UNCLEAN"; }
}

# What stands there is no run's number: whoever wrote it may have written any other, and runs of it may live.
reset() {
  token=$fence fence=2147483647
  find_mark
  put_down leftovers || { say "live on: $left"; exit "$UNCLEAN"; }
  put_back || { say "clocks or cores stay as they were set"; exit "$UNCLEAN"; }
  put_properties_back
  remove_folders
  {
    flock 9
    write "$work/cleaned" "$token" && write "$work/fence" "$token"
  } 9>"$work/lock" || { say "no room to write down fence $token"; exit "$UNCLEAN"; }
}

[ -d "$work/runs" ] || mkdir -p "$work/runs"
case $command in
fence) raise_fence ;;
start) start ;;
supervise)
  {
    # Whoever has the lock, or wrote the record, has started it.
    if flock -n 9 && [ ! -s "$run/supervisor" ]; then supervise; else echo started; fi
  } 9>"$run/lock"
  ;;
sample) sample ;;
wait) wait_for_end ;;
stop)
  find_mark
  [ -s "$run/supervisor" ] || exit "$MISSING"
  put_down of_run "$run" || exit "$UNCLEAN"
  ;;
clean) clean ;;
reset) reset ;;
*)
  say "unknown command $command"
  exit 2
  ;;
esac
