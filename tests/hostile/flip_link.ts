/** Swaps the directory of the first argument for a link to the second and back, for ever. */

const [directory, target] = Deno.args as [string, string];
const away = `${directory}.away`;

function attempt(act: () => void): void {
  try {
    act();
  } catch { /* somebody made or removed it meanwhile: the next turn puts it right */ }
  // Stays a moment in each state, a different one each time, to meet every gap of the other side.
  const untilMs = performance.now() + Math.random() / 2;
  while (performance.now() < untilMs);
}

console.log("up");
for (;;) {
  attempt(() => Deno.renameSync(directory, away));
  attempt(() => Deno.symlinkSync(target, directory));
  attempt(() => Deno.removeSync(directory, { recursive: true }));
  attempt(() => Deno.renameSync(away, directory));
}
