# Which live processes are a run's, and how they are put down: a part of the supervisor, which begins with it.
#
# Uses of the rest: work, fence, boot, mark, PATIENCE_STEPS. For POSIX sh with the applets of Android 8.

# Sets `parent`, `session` and `born` of live process $1; fails when there is none.
look() {
  line=
  { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
  # The name in brackets may hold anything, a bracket too.
  set -- ${line##*) }
  [ "${1:-Z}" != Z ] || return 1
  parent=$2 session=$4 born=${20:-}
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
  for path in $(grep -l -E "\\) [A-Za-z] -?[0-9]+ -?[0-9]+ ($1) " /proc/[0-9]*/stat 2>/dev/null); do
    path=${path#/proc/}
    look "${path%/stat}" || continue
    case "|$1|" in *"|$session|"*) echo "${path%/stat}" ;; esac
  done
}

# Prints the processes whose environment holds $1.
marked() {
  for path in $(grep -l -F "$1" /proc/[0-9]*/environ 2>/dev/null); do
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

# Sets `init` to the processes that get the children of those that end. A virtual phone names its own, each as
# PID:BORN. On any other system than Android they are not the phone's alone: none is named then.
find_init() {
  init=${ANDROID_ROOT:+1}
  [ -n "${BENCHFARM_INIT:-}" ] || return 0
  init=
  for named in $BENCHFARM_INIT; do
    look "${named%:*}" && [ "$born" = "${named#*:}" ] && init="$init ${named%:*}"
  done
}

# Sets `first` to when the first run on that side of the fence began, in tenths of a second since this boot.
# Newer runs count while they live.
find_first() {
  first=
  for record in "$work"/runs/*/supervisor; do
    folder=${record%/*}
    case ${folder##*/} in *[!0-9]*) continue ;; esac
    [ "${folder##*/}" "$1" "$fence" ] || continue
    look_up "$record" || [ "$1" = -le ] && [ "$was_boot" = "$boot" ] || continue
    case $was_born in '' | ? | *[!0-9]*) continue ;; esac
    [ -n "$first" ] && [ "${was_born%?}" -ge "$first" ] || first=${was_born%?}
  done
}

# Sets `adbd` to the last of our own ancestors: init is its parent too, and it may have begun again since.
find_adbd() {
  adbd=$$
  while look "$adbd"; do
    case " $init " in *" $parent "*) break ;; esac
    adbd=$parent
  done
}

# Succeeds if process $1 is our user's, has lost its parent, and began after the first of these runs. Nothing else
# is asked of it: a run may change its environment, session, folder and name. What a person runs by adb has adbd as
# an ancestor.
is_orphan() {
  [ "$1" != "$adbd" ] && [ -O "/proc/$1" ] && look "$1" || return 1
  case " $init " in *" $parent "*) ;; *) return 1 ;; esac
  [ "${born%?}" -ge "$first" ] || return 1
  [ -z "$before" ] || [ "${born%?}" -lt "$before" ] || return 1
  # With adb as root, services of the system are our user's too. Android's policy has them in other domains.
  [ -O /proc/1 ] || return 0
  domain= our_domain=
  { read -r domain <"/proc/$1/attr/current"; read -r our_domain </proc/self/attr/current; } 2>/dev/null
  [ "$domain" = "$our_domain" ]
}

# Prints the processes that descend from process $1.
below() {
  for child in $(
    for path in $(grep -l -E "\\) [A-Za-z] $1 " /proc/[0-9]*/stat 2>/dev/null); do
      path=${path#/proc/}
      look "${path%/stat}" && [ "$parent" = "$1" ] && echo "${path%/stat}"
    done
  ); do
    echo "$child"
    below "$child"
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
  find_init
  find_adbd
  find_first -gt
  before=$first
  find_first -le
  set -- -e "BENCHFARM_MARK=$mark"
  [ -z "$first" ] || for parent in $init; do
    for state in R S D T t; do set -- "$@" -e ") $state $parent "; done
  done
  # One grep for both, since it is what takes time.
  for path in $(grep -l -F "$@" /proc/[0-9]*/environ /proc/[0-9]*/stat 2>/dev/null); do
    stray=${path#/proc/}
    stray=${stray%/*}
    case $path in
    */stat) [ -n "$first" ] && is_orphan "$stray" && { echo "$stray"; below "$stray"; } ;;
    *) case $newer in *" $stray "*) ;; *) echo "$stray" ;; esac ;;
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
