# Which live processes are a run's, and how they are put down: a part of the supervisor, which begins with it.
#
# Uses of the rest: work, fence, boot, mark, PATIENCE_STEPS. For POSIX sh with the applets of Android 8.

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
