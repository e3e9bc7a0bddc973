# Spins in a hot loop.
while :; do :; done
