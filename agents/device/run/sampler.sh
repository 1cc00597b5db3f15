# Samples what the device shows of a run while it is measured: a part of the supervisor, which starts and ends it.
#
# It runs beside the measured process, so it starts no process but the pause, and none where the shell can wait
# by itself (mksh). The shell does no sums: it writes the first word of each file, and the farm reads the lines
# (farm/phone/condition/run_trace.py). What cannot be read at the start is not tried again.
#
# Uses of the rest: work, run, argument (the measured process), look, look_at_clock.

# In the first second samples are dense: many runs are over by then, and their memory is known from late samples.
readonly EARLY_SAMPLES=20 EARLY_PAUSE=0.05
# So many samples, then twice the pause: an hour and a half of a run are 1800 lines.
readonly SAMPLES_PER_PAUSE=360
readonly MOST_ZONES=8 MOST_CHILDREN=8
# A driver that takes longer than this to answer would set the pace.
readonly SLOW_TENTHS=2

# Adds column $1, the first word of file $2, unless it cannot be read, is empty or slow.
add() {
  case "$1$2" in *[!A-Za-z0-9/_.,:+-]*) return 1 ;; esac
  case " $columns " in *" $1 "*) return 1 ;; esac
  # A slow driver is slow twice; a shell that had to wait for the CPU is not.
  try_read "$2" || try_read "$2" || return 1
  place=$((place + 1))
  columns="$columns $1" values="$values \${v$place:--}"
  "$add_read" "v$place" "$2"
}

# Fails when the first word of file $1 cannot be read, or took too long.
try_read() {
  value=
  look_at_clock
  before=$tenths
  { read -r value rest <"$1"; } 2>/dev/null
  look_at_clock
  [ -n "$value" ] && [ $((tenths - before)) -lt "$SLOW_TENTHS" ]
}

# Adds the command that sets variable $1 to the first word of file $2, or to nothing.
add_read() {
  reads="$reads
    $1=
    read -r $1 rest <$2"
}
# In mksh `read` takes a call of the kernel for each byte, `$(<file)` one for all, and starts no process.
add_read_at_once() {
  reads="$reads
    set -- \$(<$2)
    $1=\${1:-}"
}

# Sets `words` to the first line of file $1; fails when there is none.
words_of() {
  words=
  { read -r words <"$1"; } 2>/dev/null
  [ -n "$words" ]
}

# Kernels before 4 have no policy folders, but one in each core's folder.
add_policies() {
  for policy in devices/system/cpu/cpufreq/policy* devices/system/cpu/cpu[0-9]*/cpufreq; do
    words_of "$policy/related_cpus" || continue
    case $policy in
    */cpufreq) name=policy${words%% *} ;;
    *) name=${policy##*/} ;;
    esac
    cores_of_policy=$words least=- most=-
    add "limit:$name" "$policy/scaling_max_freq" || continue
    add "clock:$name" "$policy/scaling_cur_freq"
    words_of "$policy/cpuinfo_min_freq" && least=${words%% *}
    words_of "$policy/cpuinfo_max_freq" && most=${words%% *}
    echo "policy $name $least $most $cores_of_policy"
    list=
    for core in $cores_of_policy; do list=$list,$core; done
    clusters="$clusters $most:${list#,}"
  done
}

# Adds the GPU with name $1: its clock $2, its limit $3, and the clocks that it can have, $4.
add_gpu() {
  add gpu_clock "$2" || return 1
  add gpu_limit "$3"
  words_of "$4" || words=
  echo "gpu $1 $words"
}

add_gpus() {
  gpu=class/kgsl/kgsl-3d0
  add_gpu kgsl "$gpu/gpuclk" "$gpu/devfreq/max_freq" "$gpu/gpu_available_frequencies" && return
  for gpu in class/devfreq/*mali* class/devfreq/*gpu* class/devfreq/*g3d* devices/platform/*.mali; do
    add_gpu "${gpu##*/}" "$gpu/cur_freq" "$gpu/max_freq" "$gpu/available_frequencies" && return
  done
  gpu=kernel/gpu
  add_gpu exynos "$gpu/gpu_clock" "$gpu/gpu_max_clock" "$gpu/gpu_freq_table"
}

# Adds of the thermal devices $1 those that tell of heat near the chip: at most three of a kind.
add_thermal() {
  added=0 kinds=
  for device in class/thermal/"$1"[0-9]*; do
    [ "$added" -lt "$MOST_ZONES" ] || break
    words_of "$device/type" || continue
    type=${words%% *}
    case $type in
    *[Cc][Pp][Uu]* | *[Gg][Pp][Uu]* | *[Ss]kin* | *SKIN* | *[Ss]oc* | BIG | MID | LITTLE | G3D | *quiet* | battery | *freq*) ;;
    *) continue ;;
    esac
    kind=${type%%[0-9]*}
    case $kinds in *" $kind "*" $kind "*" $kind "*) continue ;; esac
    kinds="$kinds $kind "
    add "$2:$type" "$device/$3" && added=$((added + 1))
  done
}

add_battery() {
  for supply in class/power_supply/battery class/power_supply/*; do
    words_of "$supply/type" && [ "${words%% *}" = Battery ] || continue
    add current "$supply/current_now"
    add voltage "$supply/voltage_now"
    add charge "$supply/charge_counter"
    add status "$supply/status" && return
  done
}

# Sets `rss`, `swap`, `peak` and `cores` of process $1; a line each in a file of fifty. It is read to its end: bash
# may give what is left of a file to the next one that it reads.
read_status() {
  rss=- swap=- peak=- cores=-
  while read -r key value rest; do
    case $key in
    VmHWM:) peak=$value ;;
    VmRSS:) rss=$value ;;
    VmSwap:) swap=$value ;;
    Cpus_allowed_list:) cores=$value ;;
    esac
  done <"$processes/$1/status"
}

# The same in mksh. The lines of the file keep their places as long as the process does.
read_status_by_place() {
  pick "$1" && return
  read_status "$1"
  place=0 places=
  while read -r key rest; do
    place=$((place + 1))
    case $key in
    VmHWM: | VmRSS: | VmSwap: | Cpus_allowed_list:) places="$places $key $place" ;;
    esac
  done <"$processes/$1/status"
  set -- $places
  [ "${1:-}${3:-}${5:-}${7:-}" = VmHWM:VmRSS:VmSwap:Cpus_allowed_list: ] || return
  eval "pick() {
    IFS=\$end_of_line
    set -- \$(<\"\$processes/\$1/status\")
    IFS=\$separators
    set -- \${$2:-} \${$4:-} \${$6:-} \${$8:-}
    [ \"\${1:-}\${4:-}\${7:-}\${10:-}\" = $1$3$5$7 ] || return 1
    peak=\$2 rss=\$5 swap=\$8 cores=\${11:-}
  }"
}
pick() { return 1; }

# Sets `uptime`, in seconds.
read_uptime() { read -r uptime rest </proc/uptime; }
read_uptime_at_once() {
  set -- $(</proc/uptime)
  uptime=$1
}

# Sets `line` to the one line of the state of process $1.
read_stat() { read -r line <"/proc/$1/stat"; }
read_stat_at_once() { line=$(<"/proc/$1/stat"); }

# Sets `children` to memory and CPU time of the measured process's children, where the kernel lists them.
add_children() {
  numbers= place=0
  read -r numbers <"/proc/$argument/task/$argument/children"
  for child in $numbers; do
    [ "$place" -lt "$MOST_CHILDREN" ] || break
    place=$((place + 1))
    "$status" "$child"
    children="$children $rss $swap $peak"
    line=
    "$stat" "$child"
    set -- ${line#*) }
    children="$children ${12:--} ${13:--} ${37:--}"
  done
}

# Prints one sample; fails when the measured process is over.
take_sample() {
  "$read_uptime"
  line=
  "$stat" "$argument" || return 1
  # The name in brackets may hold blanks.
  set -- ${line#*) }
  [ "${1:-Z}" != Z ] && [ "${20:-}" = "$born" ] || return 1
  line="s $uptime ${12} ${13} ${14} ${15} ${37:--}"
  "$status" "$argument"
  allowed=$cores
  sample="$line $cores $rss $swap $peak" children=
  "$add_children"
  # A full disk ends no sampling: it may have room later.
  print_sample || :
}

# Whether core $1 is in list $2: `0-3,7`.
in_list() {
  separators=$IFS IFS=,
  set -- "$1" $2
  IFS=$separators core=$1
  shift
  for part in "$@"; do
    [ "$core" -ge "${part%-*}" ] && [ "$core" -le "${part#*-}" ] && return
  done
  return 1
}

# Binds the sampler to the slowest cluster, or, where the measured process is bound to cores, to the slowest that
# has none of them.
bind() {
  "$status" $$
  own=$cores slowest= slowest_khz=
  for cluster in $clusters; do
    khz=${cluster%:*} numbers=${cluster#*:}
    case $khz in *[!0-9]*) return ;; esac
    in_list "${numbers%%,*}" "$own" || continue
    [ "$allowed" != "$own" ] && in_list "${numbers%%,*}" "$allowed" && continue
    [ -z "$slowest" ] || [ "$khz" -lt "$slowest_khz" ] || continue
    slowest=$numbers slowest_khz=$khz
  done
  # With one cluster there is no choice.
  case $clusters in *:*:*) ;; *) return ;; esac
  [ -n "$slowest" ] && mask_of "$slowest" && taskset -p "$mask" $$
}

# Sets `mask` to the cores of list $1, `0,1,2,3`, as taskset expects them: hexadecimal. Fails beyond 31 cores.
mask_of() {
  bits=0 mask=
  separators=$IFS IFS=,
  set -- $1
  IFS=$separators
  for core in "$@"; do
    case $core in '' | *[!0-9]*) return 1 ;; esac
    [ "$core" -lt 31 ] || return 1
    bits=$((bits | 1 << core))
  done
  while [ "$bits" -gt 0 ]; do
    digit=$((bits % 16)) bits=$((bits / 16))
    case $digit in
    10) digit=a ;;
    11) digit=b ;;
    12) digit=c ;;
    13) digit=d ;;
    14) digit=e ;;
    15) digit=f ;;
    esac
    mask=$digit$mask
  done
}

# Waits for the pause: in mksh on a pipe that never has anything to read, elsewhere by a process.
wait_on_pipe() {
  read -r -t "$pause" value <&8
  # A time-out is like a signal's; anything else is no wait.
  [ $? -gt 128 ] || wait=wait_in_process
}
# Without a pause it would take the CPU from the run.
wait_in_process() { sleep "$pause" || exit; }

# Prints the trace of process $argument until it ends, with a sample every $sampling seconds after the early ones.
sample() {
  # A virtual phone may say otherwise.
  processes=${BENCHFARM_PROC:-}
  [ -n "$processes" ] && [ -d "$processes" ] || processes=/proc
  pause=$sampling columns='utime stime cutime cstime core cores rss swap peak' clusters= place=0 reads= values=
  add_read=add_read read_uptime=read_uptime status=read_status stat=read_stat wait=wait_in_process add_children=:
  case ${KSH_VERSION:-} in
  *MIRBSD*)
    add_read=add_read_at_once read_uptime=read_uptime_at_once status=read_status_by_place stat=read_stat_at_once
    separators=$IFS end_of_line='
'
    ;;
  esac
  look "$argument" || return
  cd "${BENCHFARM_SYS:-/sys}" || cd /
  echo "pause $pause"
  add_policies
  add_gpus
  add_thermal thermal_zone zone temp
  add_thermal cooling_device cooling cur_state
  add_battery
  echo "columns $columns"
  eval "print_sample() {
    $reads
    echo \"\$sample$values\$children .\"
  }"
  # Nothing from here on names files by a pattern.
  set -f
  case ${KSH_VERSION:-} in
  *MIRBSD*)
    # In a process of its own: a shell that may not open it ends.
    (exec 8<>/proc/self/fd/0 && read -r -t 0.01 value <&8)
    [ $? -le 128 ] || {
      exec 8<>/proc/self/fd/0
      wait=wait_on_pipe
    }
    ;;
  esac
  [ ! -r "/proc/$argument/task/$argument/children" ] || add_children=add_children
  take_sample || return
  usual=$pause pause=$EARLY_PAUSE early=$EARLY_SAMPLES
  "$wait"
  # The measured process has bound itself by now, if it is to be bound.
  take_sample || return
  bind >/dev/null
  count=1
  while
    early=$((early - 1))
    [ "$early" -ne 0 ] || pause=$usual
    "$wait"
    take_sample
  do
    count=$((count + 1))
    [ "$count" -ge "$SAMPLES_PER_PAUSE" ] || continue
    count=0
    case $pause in
    0.*) pause=1 ;;
    *) [ "$pause" -gt 3600 ] || pause=$((pause * 2)) ;;
    esac
    echo "pause $pause"
  done
}
