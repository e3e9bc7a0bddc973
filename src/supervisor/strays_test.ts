import assert from "node:assert/strict";
import type { ProcessPort, ProcessRow } from "../ports/process.ts";
import { Strays } from "./strays.ts";

/** `pid parent group session command` of each, and `marked` where it is. */
function table(...lines: string[]): ProcessRow[] {
  return lines.map((line) => {
    const [pid, parentPid, groupId, sessionId, command, mark] = line.split(" ");
    return {
      pid: Number(pid),
      parentPid: Number(parentPid),
      groupId: Number(groupId),
      sessionId: Number(sessionId),
      state: "S",
      marked: mark === "marked",
      residentBytes: 0,
      command: command!,
    };
  });
}

const AGENT = "20 10 20 20 agent";

const ROWS: { name: string; tables: string[][]; killed: string[] }[] = [
  {
    name: "one that was orphaned after it was seen",
    tables: [["30 20 30 30 daemon"], ["30 1 30 30 daemon"]],
    killed: ["30", "-30"],
  },
  {
    name: "what it starts when it is an orphan already",
    tables: [["30 20 30 30 daemon"], ["30 1 30 30 daemon", "31 30 30 30 a", "32 31 32 32 b"]],
    killed: ["30", "-30", "31", "32", "-32"],
  },
  {
    name: "what is left in its session when it is gone itself",
    tables: [
      ["30 20 30 30 daemon"],
      ["30 1 30 30 daemon", "31 30 30 30 worker"],
      ["31 1 30 30 worker"],
    ],
    killed: ["31"],
  },
  {
    name: "one that was an orphan before anybody looked, and is marked",
    tables: [["30 1 30 30 daemon marked", "40 1 40 40 other"]],
    killed: ["30", "-30"],
  },
  {
    name: "one that has become another program",
    tables: [["30 20 30 30 daemon", "31 30 30 30 sh"], ["31 1 30 30 sleep"]],
    killed: ["31"],
  },
  {
    name: "nobody who got the id of one that is gone",
    tables: [
      ["30 20 30 30 daemon", "31 30 30 30 sh"],
      ["30 1 30 30 login", "31 1 31 31 sh"],
    ],
    killed: [],
  },
];

for (const { name, tables, killed } of ROWS) {
  Deno.test(`Strays: kills ${name}`, () => {
    const signals: string[] = [];
    const told: unknown[] = [];
    const process: ProcessPort = {
      spawn: () => assert.fail("nothing is started"),
      table: () => assert.fail("it is given"),
      signal: (pid) => (signals.push(`${pid}`), "sent"),
      signalGroup: (pid) => (signals.push(`-${pid}`), "gone"),
    };
    const strays = new Strays(process, { emit: (_event, fields) => void told.push(fields) });
    for (const rows of tables) strays.see(table(AGENT, ...rows), 20);
    strays.kill();
    assert.deepEqual(signals, killed);
    assert.equal(told.length, killed.filter((id) => !id.startsWith("-")).length);
  });
}

Deno.test("Strays.freeze: stops each once, and says whether anybody new was stopped", () => {
  const stopped: number[] = [];
  const process: ProcessPort = {
    spawn: () => assert.fail("nothing is started"),
    table: () => assert.fail("it is given"),
    signal: (pid, signal) => (assert.equal(signal, "SIGSTOP"), stopped.push(pid), "sent"),
    signalGroup: () => "gone",
  };
  const strays = new Strays(process, { emit: () => {} });
  assert.equal(strays.freeze(), false);
  strays.see(table(AGENT, "30 20 30 30 a"), 20);
  assert.equal(strays.freeze(), true);
  strays.see(table(AGENT, "30 20 30 30 a", "31 30 31 31 b"), 20);
  assert.equal(strays.freeze(), true);
  assert.equal(strays.freeze(), false);
  assert.deepEqual(stopped, [30, 31]);
});
