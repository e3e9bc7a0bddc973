import assert from "node:assert/strict";
import type { Route, TriggerSettings } from "../config/settings.ts";
import { checkTriggers, parseListen, type TriggerSurroundings } from "./check.ts";
import { loadCron } from "./slots.ts";

const Cron = await loadCron();

const TRIGGER: TriggerSettings = {
  intervalMs: null,
  cron: null,
  timezone: "UTC",
  overlap: "skip",
  jitterMs: 0,
  catchUp: false,
  subscribe: [],
  routes: [],
  session: "fresh",
  maxIterations: 0,
  lifetimeMs: 0,
  lifetimeTokens: 0,
  tokenSecret: null,
};

const AROUND: TriggerSurroundings = {
  mode: "once",
  servers: ["docs"],
  listen: null,
  lock: null,
  hasInstruction: true,
};

function route(match: string, over: Partial<Route> = {}): Route {
  return {
    match,
    target: { kind: "spawn", maxInflight: 4 },
    debounceMs: 250,
    cap: 16,
    overflow: "coalesce",
    instruction: null,
    ...over,
  };
}

function check(
  trigger: Partial<TriggerSettings>,
  around: Partial<TriggerSurroundings>,
  expected: RegExp[],
): void {
  const problems = checkTriggers({ ...TRIGGER, ...trigger }, { ...AROUND, ...around }, Cron)
    .map((problem) => `${problem.key} ${problem.value}: ${problem.message}`);
  assert.equal(problems.length, expected.length, problems.join("\n"));
  problems.forEach((problem, i) => assert.match(problem, expected[i]!));
}

Deno.test("checkTriggers: what is right is silent", () => {
  check({}, {}, []);
  check({ intervalMs: 0 }, { mode: "loop" }, []);
  check({ intervalMs: 1 }, { mode: "schedule" }, []);
  check({ cron: "*/5 * * * *", timezone: "Europe/Berlin" }, { mode: "schedule" }, []);
  check({ subscribe: ["docs:mem://x", "file:./in/*"] }, { mode: "reactive", lock: "a-b_1" }, []);
  check({ tokenSecret: "file:/t" }, { mode: "reactive", listen: ":9464" }, []);
  check(
    {
      subscribe: ["docs:mem://x"],
      sessions: ["second"],
      routes: [
        route("a", { target: { kind: "continue", session: "main" } }),
        route("b", { target: { kind: "continue", session: "second" }, instruction: "see {uri}" }),
      ],
    },
    { mode: "reactive" },
    [],
  );
});

Deno.test("checkTriggers: each kind of mistake, and all of them at once", () => {
  check({ intervalMs: 5000 }, {}, [/^trigger.interval 5000ms: .*loop and schedule/]);
  check({ intervalMs: 5000 }, { mode: "reactive" }, [/interval/, /needs trigger.subscribe/]);
  check({ cron: "* * * * *" }, { mode: "loop" }, [/^trigger.cron/]);
  check({}, { mode: "schedule" }, [/needs trigger.interval or trigger.cron/]);
  check({ cron: "* * * * *", intervalMs: 1 }, { mode: "schedule" }, [/one of them/]);
  check({ intervalMs: 0 }, { mode: "schedule" }, [/at least 1ms/]);
  check({}, { listen: "nowhere", lock: "a/b" }, [/^lock a\/b/, /^listen nowhere/]);
  check({ subscribe: ["docs", "x:mem://y"] }, { mode: "reactive" }, [
    /SERVER:URI/,
    /no tool server is named x \(docs\)/,
  ]);
  check({ routes: [route("a", { cap: 0 }), route("a")] }, {}, [/cap 0/, /two routes/]);
  check(
    { subscribe: ["docs:a"], routes: [route("a")] },
    { mode: "reactive", hasInstruction: false },
    [/neither the route nor the task/],
  );
  check(
    {
      cron: "0 0 30 2 *",
      timezone: "Mars/Base",
      intervalMs: 1000,
      subscribe: ["ghost:mem://x"],
      routes: [
        route("mem://x"),
        route("mem://x"),
        route("mem://y", { target: { kind: "continue", session: "nowhere" } }),
        route("mem://z", { target: { kind: "spawn", maxInflight: 0 } }),
      ],
    },
    { mode: "schedule" },
    [
      /^trigger.timezone Mars\/Base/,
      /^trigger.cron 0 0 30 2 \*: it never fires/,
      /one of them/,
      /no tool server is named ghost/,
      /^trigger.routes mem:\/\/x: two routes/,
      /nowhere: no session of this name is declared \(main\)/,
      /max_inflight 0/,
    ],
  );
});

Deno.test("parseListen: host and port, or undefined", () => {
  const rows: [string, string | undefined][] = [
    ["127.0.0.1:9464", "127.0.0.1 9464"],
    [":9464", "127.0.0.1 9464"],
    ["9464", "127.0.0.1 9464"],
    ["[::1]:80", "::1 80"],
    ["0.0.0.0:0", "0.0.0.0 0"],
    ["localhost:65535", "localhost 65535"],
    ["localhost:65536", undefined],
    ["localhost", undefined],
    ["", undefined],
    ["http://x:1", undefined],
    ["::1:80", undefined],
  ];
  for (const [text, expected] of rows) {
    const parsed = parseListen(text);
    assert.equal(parsed && `${parsed.hostname} ${parsed.port}`, expected, text);
  }
});
