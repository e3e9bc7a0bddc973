/** Loads a configuration from real files in a directory of its own, as the command line does. */

import { loadSettings } from "../../src/config/load.ts";
import { formatProblem, type Problem } from "../../src/config/problem.ts";
import type { LoadInput } from "../../src/config/reading.ts";
import type { Settings } from "../../src/config/settings.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import { systemFiles } from "../../src/sys/files.ts";

/** What a test gives; paths of files are relative to the working directory. */
export interface Surroundings {
  flags?: Record<string, string[]>;
  env?: Record<string, string>;
  files?: Record<string, string>;
  stdin?: string;
  purpose?: LoadInput["purpose"];
  recorded?: LoadInput["recorded"];
  judge?: LoadInput["judge"];
  terminal?: boolean;
  /** Changes the directory before the loading. */
  prepare?: (directory: string) => void;
}

/** What came of it. In every text the working directory is `CWD`. */
export interface Loading {
  outcome: Outcome<Settings, Problem[]>;
  settings: Settings;
  problems: string[];
  notices: string[];
}

/** Loads; the directory is gone afterwards. Needs read and write permission for temporary files. */
export async function load(given: Surroundings): Promise<Loading> {
  const directory = await Deno.realPath(await Deno.makeTempDir({ prefix: "agentd-config-" }));
  const notices: string[] = [];
  try {
    for (const [name, content] of Object.entries(given.files ?? {})) {
      const path = `${directory}/${name}`;
      await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
      await Deno.writeTextFile(path, content, { mode: 0o600 });
    }
    given.prepare?.(directory);
    const outcome = await loadSettings({
      purpose: given.purpose ?? "run",
      flags: given.flags ?? {},
      env: { PATH: "/usr/bin:/bin", ...given.env },
      cwd: directory,
      home: directory,
      uid: Deno.uid(),
      files: systemFiles,
      readStdin: () => Promise.resolve({ ok: true, value: given.stdin ?? "" }),
      stderrIsTerminal: given.terminal ?? false,
      recorded: given.recorded,
      judge: given.judge,
      notice: (text) => notices.push(text),
    });
    const shown = (text: string): string => text.replaceAll(directory, "CWD");
    return {
      outcome,
      get settings(): Settings {
        if (outcome.ok) return outcome.value;
        throw new Error(outcome.failure.map(formatProblem).join("\n"));
      },
      problems: outcome.ok ? [] : outcome.failure.map(formatProblem).map(shown),
      notices: notices.map(shown),
    };
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}
