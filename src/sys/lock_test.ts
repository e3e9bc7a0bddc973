import assert from "node:assert/strict";
import { comesSoon, systemLock } from "./lock.ts";

const HOLDER = `
import { systemLock } from ${JSON.stringify(new URL("./lock.ts", import.meta.url).href)};
const lock = await systemLock.tryLock(Deno.args[0]);
if (Deno.args[1] === "spawn") {
  new Deno.Command("sleep", { args: ["30"], stdin: "null", stdout: "null", stderr: "null" }).spawn();
}
console.log(lock.ok ? "taken" : lock.failure.class);
if (lock.ok && Deno.args[1] !== "leave") await new Promise((resolve) => setTimeout(resolve, 60_000));
`;

function hold(path: string, mode: string): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: [
      "eval",
      "--no-config",
      HOLDER,
      path,
      mode,
    ],
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
    detached: true,
  }).spawn();
}

async function firstLine(child: Deno.ChildProcess): Promise<string> {
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new TextDecoder().decode(value).trim();
}

Deno.test("systemLock: exclusive between processes, and dies with a SIGKILL", async () => {
  const directory = Deno.makeTempDirSync();
  const path = `${directory}/a.lock`;
  try {
    const holder = hold(path, "spawn");
    assert.equal(await firstLine(holder), "taken");
    const refused = await systemLock.tryLock(path);
    assert(!refused.ok);
    assert.equal(refused.failure.class, "held");
    assert.equal(await systemLock.isHeld(path), true);
    assert.equal(Deno.readTextFileSync(path).trim(), String(holder.pid));

    holder.kill("SIGKILL");
    await holder.status;
    // What it had started lives on, and has not inherited the lock.
    const taken = await systemLock.tryLock(path);
    Deno.kill(-holder.pid, "SIGKILL");
    assert(taken.ok, JSON.stringify(taken));

    const second = hold(path, "leave");
    assert.equal(await firstLine(second), "held");
    await second.status;
    taken.value.release();
    taken.value.release();
    const again = await systemLock.tryLock(path);
    assert(again.ok);
    assert.equal(await systemLock.isHeld(path), true);
    again.value.release();
    assert.equal(await systemLock.isHeld(path), false);
  } finally {
    Deno.removeSync(directory, { recursive: true });
  }
});

Deno.test("systemLock: what is released is free, whatever process is being started", async () => {
  const directory = Deno.makeTempDirSync();
  const starts = `for (;;) await new Deno.Command("true", { detached: true }).spawn().status;`;
  const starters = [1, 2].map(() =>
    new Worker(`data:application/javascript,${encodeURIComponent(starts)}`, { type: "module" })
  );
  try {
    for (let i = 0; i < 500; i++) {
      const taken = await systemLock.tryLock(`${directory}/a.lock`);
      assert(taken.ok, `${i}: ${JSON.stringify(taken)}`);
      taken.value.release();
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
  } finally {
    for (const starter of starters) starter.terminate();
    Deno.removeSync(directory, { recursive: true });
  }
});

Deno.test("systemLock: those who ask write nothing and do not see each other", async () => {
  const directory = Deno.makeTempDirSync();
  const path = `${directory}/a.lock`;
  try {
    assert.equal(await systemLock.isHeld(path), false);
    assert.deepEqual([...Deno.readDirSync(directory)], []);
    Deno.writeTextFileSync(path, "7\n");
    const asked = Array.from({ length: 200 }, () => systemLock.isHeld(path));
    assert.deepEqual(new Set(await Promise.all(asked)), new Set([false]));
    assert.equal(Deno.readTextFileSync(path), "7\n");
  } finally {
    Deno.removeSync(directory, { recursive: true });
  }
});

Deno.test("comesSoon: a lock that comes is kept, one that comes later is let go, each once", async () => {
  let dropped = 0;
  const drop = () => void dropped++;
  assert.equal(await comesSoon(Promise.resolve(), drop), true);
  const lock = Promise.withResolvers<void>();
  assert.equal(await comesSoon(lock.promise, drop), false);
  assert.equal(dropped, 0);
  lock.resolve();
  await lock.promise;
  assert.equal(dropped, 1);
});

Deno.test("comesSoon: on a machine that was halted, a lock that is free is taken all the same", async () => {
  let dropped = 0;
  const lock = new Promise<void>((resolve) => setTimeout(resolve, 400));
  const came = comesSoon(lock, () => void dropped++);
  for (const startMs = performance.now(); performance.now() - startMs < 600;);
  assert.equal(await came, true);
  assert.equal(dropped, 0);
});

Deno.test("systemLock: a path that cannot be opened is a failure, not a throw", async () => {
  const refused = await systemLock.tryLock("/nonexistent-directory/x.lock");
  assert(!refused.ok);
  assert.equal(refused.failure.class, "other");
});
