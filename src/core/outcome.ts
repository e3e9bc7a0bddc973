/** A result that may fail for a reason of the world: a value with a closed code, never a throw. */
export type Outcome<Value, Failure> = { ok: true; value: Value } | { ok: false; failure: Failure };

/** A successful outcome. */
export function success<Value>(value: Value): { ok: true; value: Value } {
  return { ok: true, value };
}

/** A failed outcome. */
export function failed<Failure>(failure: Failure): { ok: false; failure: Failure } {
  return { ok: false, failure };
}
