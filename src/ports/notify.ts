/**
 * The service manager, by sd_notify(3). Contract: never throws and never waits; without a manager
 * it does nothing.
 */
export interface NotifyPort {
  /** Whether there is a manager to tell. */
  present: boolean;
  /** Half of the manager's watchdog period in milliseconds; null: it wants no signs of life. */
  watchdogMs: number | null;
  /** One assignment a line, as in `READY=1`. */
  tell(state: string): void;
}
