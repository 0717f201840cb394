/** Waiting for a promise no longer than a signal allows. */

/**
 * What `promise` gives, unless `signal` aborts first.
 * @param onLate is called at once then, to care for what becomes of the promise later.
 */
export function orAborted<Result>(
  promise: Promise<Result>,
  signal: AbortSignal,
  onLate: () => void = () => undefined,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      onLate();
      reject(signal.reason as Error);
    };
    const settled = (): void => {
      signal.removeEventListener('abort', onAbort);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    promise.then(
      (result) => {
        settled();
        resolve(result);
      },
      (error: unknown) => {
        settled();
        reject(error);
      },
    );
  });
}
