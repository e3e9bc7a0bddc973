/** bubblewrap, the program behind `sandbox: bwrap`, and what its users have in common. */

/** As it is found on PATH. */
export const BWRAP = "bwrap";

/** Its arguments for the whole system, to be looked at only. */
export const READ_ONLY_SYSTEM: readonly string[] = [
  "--ro-bind",
  "/",
  "/",
  "--dev",
  "/dev",
  "--proc",
  "/proc",
];
