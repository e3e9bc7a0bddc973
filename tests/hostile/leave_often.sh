# Starts one program after the other in sessions of their own, which no signal to the group reaches. Where a
# test fails, it ends by itself.
trap '' TERM
i=0
while [ $((i += 1)) -lt 5000 ]; do
  setsid sh -c 'sleep 30; : "$0"' "stray-of-$1" </dev/null >/dev/null 2>&1 &
  sleep 0.02
done
