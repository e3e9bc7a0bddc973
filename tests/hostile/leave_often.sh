# Starts one program after the other in sessions of their own, which no signal to the group reaches.
trap '' TERM
while :; do
  setsid sh -c 'sleep 30; : "$0"' "stray-of-$1" </dev/null >/dev/null 2>&1 &
  sleep 0.02
done
