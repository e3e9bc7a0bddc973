/** The clean environment: what processes below the supervisor get without asking. */

/** Variables that every process below an agent gets, where they are set. */
export const CLEAN_ENVIRONMENT: readonly string[] = [
  "PATH",
  "HOME",
  "TMPDIR",
  "LANG",
  // Without these no program starts on Windows.
  "SYSTEMROOT",
  "COMSPEC",
  "PATHEXT",
  "TEMP",
  "TMP",
  "USERPROFILE",
  "APPDATA",
  "LOCALAPPDATA",
];

/** The clean environment of this process's children. */
export function cleanEnvironment(
  env: (name: string) => string | undefined,
): Record<string, string> {
  const clean: Record<string, string> = {};
  for (const name of CLEAN_ENVIRONMENT) {
    const value = env(name);
    if (value !== undefined) clean[name] = value;
  }
  return clean;
}
