import assert from "node:assert/strict";
import { load, type Surroundings } from "../../tests/fakes/configuration.ts";

const flags = (more: Record<string, string[]>): Surroundings => ({
  flags: { instruction: ["x"], ...more },
});
const reactive = { mode: ["reactive"], mcp: ["docs=true"] };

/** Bad triggers: the beginning of each line that is said. */
const rows: [given: Surroundings, lines: string[]][] = [
  [
    flags({ mode: ["schedule"], cron: ["0 0 30 2 *"] }),
    ['--cron: Cannot use "0 0 30 2 *": it never fires'],
  ],
  [
    flags({ mode: ["schedule"], cron: ["every day"] }),
    ['--cron: Cannot use "every day": it has 2 fields'],
  ],
  [
    flags({ mode: ["schedule"], cron: ["@daily"], timezone: ["Mars/Base"] }),
    ['--timezone: Cannot use "Mars/Base": no such time zone'],
  ],
  [flags({ mode: ["schedule"] }), ['--mode: Cannot use "schedule": needs trigger.interval or']],
  [
    flags({ mode: ["schedule"], cron: ["@daily"], interval: ["5m"] }),
    ['--interval: Cannot use "5m": stands beside trigger.cron'],
  ],
  [flags({ interval: ["5m"] }), ['--interval: Cannot use "5m": only the modes loop and']],
  [flags({ cron: ["@daily"] }), ['--cron: Cannot use "@daily": only mode schedule uses it']],
  [
    flags({ ...reactive, subscribe: ["docs:mem://a"], interval: ["5m"] }),
    ['--interval: Cannot use "5m": only the modes loop and schedule'],
  ],
  [flags({ mode: ["reactive"] }), ['--mode: Cannot use "reactive": needs trigger.subscribe']],
  [
    flags({ ...reactive, subscribe: ["dosc:mem://a"] }),
    ['--subscribe: Cannot use "dosc:mem://a": no tool server is named dosc (docs); did you mean docs?'],
  ],
  [
    flags({ ...reactive, subscribe: ["nothing"] }),
    ['--subscribe: Cannot use "nothing": SERVER:URI or file:GLOB is needed'],
  ],
  [
    flags({
      ...reactive,
      subscribe: ["docs:mem://a"],
      route: ["mem://a=>spawn", "mem://a=>continue:main"],
    }),
    ['--route: Cannot use "mem://a": two routes match it'],
  ],
  [
    flags({ ...reactive, subscribe: ["docs:mem://a"], route: ["mem://a=>continue:mian"] }),
    ['--route: Cannot use "mian": no session of this name is declared'],
  ],
  [
    flags({ ...reactive, subscribe: ["docs:mem://a"], route: ["mem://a=>continue:a b"] }),
    ['--route: "a b" is not a session name'],
  ],
  [
    flags({ ...reactive, subscribe: ["docs:mem://a"], route: ["mem://a=>spawn,cap=0"] }),
    ["--route: 0 is not a whole number from 1 to 100000"],
  ],
  [
    flags({ ...reactive, subscribe: ["docs:mem://a"], route: ["mem://a=>spawn,debonce=1s"] }),
    ['--route: Cannot read "mem://a=>spawn,debonce=1s": "debonce" is no setting of a route; did you mean debounce?'],
  ],
  [
    flags({
      ...reactive,
      subscribe: ["docs:mem://a"],
      route: ["mem://a=>continue:main,max_inflight=2"],
    }),
    ['--route: Cannot read "mem://a=>continue:main,max_inflight=2": max_inflight is of spawn only'],
  ],
  [
    flags({ ...reactive, subscribe: ["docs:mem://a"], route: ["mem://a"] }),
    ['--route: Cannot read "mem://a": it has no =>'],
  ],
  [
    flags({ ...reactive, subscribe: ["docs:mem://a"], route: ["=>spawn"] }),
    ['--route: Cannot read "=>spawn": nothing stands before =>'],
  ],
  [
    {
      flags: {
        mode: ["reactive"],
        mcp: ["docs=true"],
        subscribe: ["docs:mem://a"],
        route: ["mem://a=>spawn"],
      },
    },
    ['--route: Cannot use "mem://a": neither the route nor the task has an instruction'],
  ],
  [flags({ listen: ["nowhere"] }), ['--listen: Cannot use "nowhere": ADDRESS:PORT is needed']],
  [flags({ listen: ["127.0.0.1:70000"] }), [
    '--listen: Cannot use "127.0.0.1:70000": ADDRESS:PORT',
  ]],
  [flags({ lock: ["a/b"] }), ['--lock: "a/b" is not a lock name']],
  [
    flags({ trigger_token_file: ["none"] }),
    ["--trigger-token-file: Cannot read the secret file: there is no file none"],
  ],
  [
    {
      ...flags({}),
      files: {
        "agentd.yaml":
          "mode: reactive\ntrigger:\n  interval: 5m\n  subscribe: [file:x]\n  routes:\n" +
          "    - { match: a, spawn: {} }\n    - { match: a, spawn: {}, continue: main }\n" +
          "    - { match: a, continue: main }\n    - { match: b }\n",
      },
    },
    [
      "agentd.yaml:7: trigger.routes.1: a route has both spawn and continue",
      "agentd.yaml:9: trigger.routes.3: a route has neither spawn nor continue",
      'agentd.yaml:3: trigger.interval: Cannot use "5m": only the modes',
      'agentd.yaml:8: trigger.routes.2: Cannot use "a": two routes match it',
    ],
  ],
];

Deno.test("loadSettings: every mistake of triggers is one line with its place", async () => {
  for (const [given, lines] of rows) {
    const { problems } = await load(given);
    assert.equal(problems.length, lines.length, problems.join("\n"));
    problems.forEach((line, index) => assert.ok(line.startsWith(lines[index]!), line));
  }
});

Deno.test("loadSettings: permissions asks for no instruction, and a mistake is said once", async () => {
  const given: Surroundings = {
    flags: {
      mode: ["reactive"],
      subscribe: ["file:x"],
      route: ["b=>spawn", "b=>spawn", "b=>spawn"],
    },
  };
  const permissions = await load({ ...given, purpose: "permissions" });
  assert.equal(permissions.problems.length, 1);
  assert.match(permissions.problems[0]!, /two routes match it/);
  assert.equal((await load(given)).problems.length, 2);
});

Deno.test("loadSettings: what is right passes, defaults filled in", async () => {
  const good: Surroundings[] = [
    flags({ mode: ["loop"] }),
    flags({ mode: ["loop"], interval: ["0s"] }),
    flags({ mode: ["schedule"], cron: ["*/15 9-17 * * MON-FRI"], timezone: ["Europe/Berlin"] }),
    flags({ mode: ["schedule"], interval: ["1h"], jitter: ["5s"], catch_up: ["true"] }),
    flags({ ...reactive, subscribe: ["docs:mem://inbox/*", "file:*.md"] }),
    flags({ ...reactive, subscribe: ["docs:mem://a"], route: ["a=>continue:b"], sessions: ["b"] }),
    {
      ...flags({ mode: ["reactive"], listen: ["127.0.0.1:0"], trigger_token_file: ["t"] }),
      files: { t: "token-value\n" },
    },
    // A file may hold the triggers of a mode that this run is not in.
    { ...flags({}), files: { "agentd.yaml": "trigger: { interval: 5m, cron: '@daily' }\n" } },
  ];
  for (const given of good) assert.deepEqual((await load(given)).problems, []);
  const { settings } = await load(good[4]!);
  assert.deepEqual(settings.trigger.routes, []);
  const routed = await load(good[5]!);
  assert.deepEqual(routed.settings.trigger.routes, [{
    match: "a",
    target: { kind: "continue", session: "b" },
    debounceMs: 250,
    cap: 16,
    overflow: "coalesce",
    instruction: null,
  }]);
  const token = await load(good[6]!);
  const name = token.settings.trigger.tokenSecret!;
  assert.equal(token.settings.vault.get(name)!.reveal(), "token-value");
});

Deno.test("loadSettings: a session is warm for a loop without interval, else fresh", async () => {
  const modes: [flags: Record<string, string[]>, session: string][] = [
    [{ mode: ["loop"] }, "warm"],
    [{ mode: ["loop"], interval: ["5m"] }, "fresh"],
    [{ mode: ["loop"], session: ["fresh"] }, "fresh"],
    [{ mode: ["loop"], interval: ["5m"], session: ["warm"] }, "warm"],
    [{}, "fresh"],
  ];
  for (const [more, session] of modes) {
    assert.equal((await load(flags(more))).settings.trigger.session, session);
  }
});
