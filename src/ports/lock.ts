import type { Outcome } from "../core/outcome.ts";

/** Why a lock was not taken. */
export interface LockFailure {
  /** `held`: another process has it. */
  class: "held" | "denied" | "other";
  message: string;
}

/** A lock we hold. Releasing it twice does no harm. */
export interface LockHandle {
  release(): void;
}

/**
 * Locks between processes. Contract: exclusive by path; a lock dies with its process however that
 * ends, and is not handed on to processes it starts; taking one does not wait for its holder.
 */
export interface LockPort {
  tryLock(path: string): Promise<Outcome<LockHandle, LockFailure>>;
  /**
   * Whether a process holds the lock, this one too. Asking writes nothing, and no other asker takes
   * it for a holder; whoever tries to take it at that moment does. A path without a file is free.
   */
  isHeld(path: string): Promise<boolean>;
}
