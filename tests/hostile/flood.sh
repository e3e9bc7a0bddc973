# Floods stdout with lines for ever.
exec yes "flood of $1"
