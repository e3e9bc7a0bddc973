# Hands over a sound result and does not go.
trap '' TERM
echo '{"v":1,"type":"ready"}'
echo '{"v":1,"type":"result","result":{"status":"completed","abort":null,"reason":"done","retryable":false,"resumable":false,"partial":false,"result":"done","artifact":null,"verification":"none declared","usage":{"steps":1,"model_calls":1,"tool_calls":0,"tokens_in":1,"tokens_out":1,"tokens_cached":0,"tokens_estimated":false,"cost":null}}}'
while :; do sleep 1; done
