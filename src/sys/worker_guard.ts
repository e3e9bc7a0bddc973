/**
 * To be called first in a Worker: what nobody caught is reported and not printed, since the runtime
 * would write it to stderr as it is, secrets and all.
 */
export function guardWorker(report: (message: string) => void): void {
  addEventListener("error", (event) => {
    event.preventDefault();
    report(event.message);
  });
  addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    const { reason } = event;
    report(reason instanceof Error ? `${reason.name}: ${reason.message}` : String(reason));
  });
}
