/** Ctrl-C and SIGTERM as something to wait for. A second one does not wait any longer. */
import { EXIT } from './exit-codes.ts';

export interface Interruption {
  readonly signal: AbortSignal;
  /** Resolves at the first signal. */
  readonly promise: Promise<'interrupted'>;
  /** True when it came from the keyboard. */
  readonly isFromKeyboard: () => boolean;
}

export function interruption(): Interruption {
  const controller = new AbortController();
  let isFromKeyboard = false;
  const promise = new Promise<'interrupted'>((resolve) => {
    const onSignal = (name: NodeJS.Signals): void => {
      if (controller.signal.aborted) process.exit(EXIT.interrupted);
      isFromKeyboard = name === 'SIGINT';
      controller.abort(new Error(`interrupted by ${name}`));
      resolve('interrupted');
    };
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
    process.on('SIGHUP', onSignal);
  });
  return { signal: controller.signal, promise, isFromKeyboard: () => isFromKeyboard };
}
