# Sets a phone's clocks and cores for a run, and puts back what there was. It needs root, however that is had.
#
#   sh controls.sh set WORK FENCE GOVERNOR MIN MAX CORES   for run FENCE; prints how it is then
#   sh controls.sh restore WORK                            writes into the run's folder how it is, puts all back
#
# `-` leaves a thing as it is. MIN and MAX are in kHz, within what each policy can do; CORES, parted by blanks,
# are to be online, and no others.
#
# WORK/controls is there as long as anything is set: the run's fence, the boot's id, then "FILE BEFORE ASKED" for
# each file below devices/system/cpu. It is written before anything is changed. What is printed, and
# WORK/runs/FENCE/held, has "NOW" behind each of these. For POSIX sh with the applets of Android 8.

set -u
umask 022
readonly NO_ROOT=20
command=$1 work=$2
cpu=${BENCHFARM_SYS:-/sys}/devices/system/cpu
record=$work/controls
boot=unknown
{ read -r boot <"${BENCHFARM_BOOT_ID:-/proc/sys/kernel/random/boot_id}"; } 2>/dev/null

# Runs this script again as root: adbd's own, Magisk's su, which takes a command, or AOSP's, which takes a user.
as_root() {
  # A virtual phone's user is the host's, and says nothing of the phone.
  if [ -z "${BENCHFARM_SYS:-}" ] && [ "$(id -u)" = 0 ]; then
    sh "$0" "$@"
  elif [ "$(su -c 'id -u' 2>/dev/null </dev/null)" = 0 ]; then
    words="sh '$0'"
    for word; do words="$words '$word'"; done
    su -c "$words" </dev/null
  elif [ "$(su 0 id -u 2>/dev/null </dev/null)" = 0 ]; then
    su 0 sh "$0" "$@" </dev/null
  else
    return "$NO_ROOT"
  fi
}

# Sets `now` to what file $1 of the phone says, or `-`.
look() {
  now=
  { read -r now <"$cpu/$1"; } 2>/dev/null
  now=${now:--}
}

# Adds file $1, which is to become $2, to the record in the making.
note() {
  look "$1"
  echo "$1 $now $2" >>"$record.new"
}

# Calls $1 with each row of the record.
each_row() {
  while read -r file before asked rest; do
    # The first two name run and boot.
    [ -z "$asked" ] || "$1"
  done <"$record"
}

set_row() { [ "$before" = - ] || { echo "$asked" >"$cpu/$file"; } 2>/dev/null; }
# Adds to `stuck` what takes nothing and is not as it was: the phone's own limits may be back already.
restore_row() {
  [ "$before" = - ] || { echo "$before" >"$cpu/$file"; } 2>/dev/null && return
  look "$file"
  [ "$now" = "$before" ] || stuck="$stuck $file"
}
tell_row() {
  look "$file"
  echo "$file $before $asked $now"
}

# Twice: a lower limit is refused while it is above the upper one, and the other way round.
twice() {
  each_row "$1"
  each_row "$1"
}

# Sets `within` to the limit $2, or to the nearest that policy $1 can have.
fit() {
  within=$2
  look "$1/cpuinfo_min_freq"
  [ "$now" = - ] || [ "$within" -ge "$now" ] || within=$now
  look "$1/cpuinfo_max_freq"
  [ "$now" = - ] || [ "$within" -le "$now" ] || within=$now
}

note_cores() {
  for folder in "$cpu"/cpu[0-9]*; do
    core=${folder##*/cpu} wanted=0
    case " $1 " in *" $core "*) wanted=1 ;; esac
    # Mostly the first core has no switch, and is on.
    [ ! -e "$folder/online" ] && [ "$wanted" = 1 ] || note "cpu$core/online" "$wanted"
  done
  for core in $1; do
    [ -d "$cpu/cpu$core" ] || note "cpu$core/online" 1
  done
}

note_clocks() {
  for folder in "$cpu"/cpufreq/policy*; do
    policy=cpufreq/${folder##*/}
    # A policy whose cores are all off says nothing, and sets nothing.
    look "$policy/related_cpus"
    [ "$now" != - ] || continue
    [ "$1" = - ] || note "$policy/scaling_governor" "$1"
    [ "$2" = - ] || { fit "$policy" "$2" && note "$policy/scaling_min_freq" "$within"; }
    [ "$3" = - ] || { fit "$policy" "$3" && note "$policy/scaling_max_freq" "$within"; }
  done
}

# Cores first: those that are off show no clocks.
set_all() {
  { echo "$1" && echo "$boot"; } >"$record.new"
  if [ "$5" != - ]; then
    note_cores "$5"
    cp "$record.new" "$record" && twice set_row
  fi
  note_clocks "$2" "$3" "$4"
  mv -f "$record.new" "$record" && twice set_row
  each_row tell_row
}

restore() {
  [ -s "$record" ] || return 0
  { read -r fence && read -r was_boot; } <"$record"
  [ ! -d "$work/runs/$fence" ] || each_row tell_row >"$work/runs/$fence/held"
  # Another boot has forgotten all of it.
  [ "$was_boot" != "$boot" ] || as_root put-back "$work" || return
  rm -f "$record"
}

case $command in
set)
  shift 2
  restore && as_root set-all "$work" "$@"
  ;;
restore) restore ;;
set-all)
  shift 2
  set_all "$@"
  ;;
put-back)
  for _ in 1 2; do
    stuck=
    each_row restore_row
  done
  [ -z "$stuck" ] || { echo "cannot be put back:$stuck" >&2; exit 1; }
  ;;
esac
