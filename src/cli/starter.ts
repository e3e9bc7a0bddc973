/** The starter file of `agentd init`: every line of it is valid, with its comment sign or without. */

/** The content of a new agentd.yaml. */
export const STARTER =
  `# agentd.yaml: what agentd does in this directory. Flags and AGENT_… variables override it.
# "agentd validate" checks it, "agentd run --help" explains every key.

instruction: Summarise the documents in ./docs into ./out/summary.md

# What must hold before the run counts as done. Nothing else judges it.
verify:
  require: [./out/summary.md]
#  schema: ./result.schema.json
#  checks:
#    - command: test -s out/summary.md
#      when: final                      # or turn: also after every acting turn
#      timeout: 5m

# Without this: a key from the environment, else a server on this machine.
#model:
#  intelligence: [http://127.0.0.1:11434/v1]
#  name: some-model
#  token: \${env:MY_TOKEN}               # or \${file:/run/secrets/token}; never the token itself
#  max_output_tokens: 8192
#  context_window: 128000
#  prices: { input: 3.0, cached_input: 0.3, output: 15.0 }   # USD per million tokens

# Built-in tools with exactly these permissions: files, hosts, programs.
allow:
  read: [./docs]
  write: [./out]
#  net: [example.org]
#  run: [git]

# Tool servers of others: programs with your rights, or URLs.
#mcp_servers:
#  docs:
#    command: node
#    args: [server.js]
#    env: { DOCS_TOKEN: "\${env:DOCS_TOKEN}" }
#  search:
#    url: https://search.example/mcp
#    headers: { authorization: "Bearer \${env:SEARCH_TOKEN}" }
#tools:
#  "docs/*": { legs: [sensitive] }       # replaces what is assumed: [untrusted_input, egress]
#  "search/*": { legs: [untrusted_input], timeout: 10s, rate: 30/m }

limits:
  max_steps: 40
  deadline: 10m
#  max_tokens: 1000000
#  max_cost: 2.50                       # needs model.prices

#hooks:
#  before_action: ["./hooks/guard.sh"]
#output: text
`;
