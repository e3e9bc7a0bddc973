/** A bug in this program: what can only be wrong if the code is. It crashes the process. */
export class Bug extends Error {
  override name = "Bug";
}

/** Throws a {@link Bug} unless the condition holds. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Bug(message);
}

/** Marks a branch that the types say cannot be reached. */
export function unreachable(value: never): never {
  throw new Bug(`unreachable: ${JSON.stringify(value)}`);
}
