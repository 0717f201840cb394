/** How a command ends: scripts rely on these numbers. */
export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  notFound: 3,
  conflict: 5,
  findings: 6,
  interrupted: 130,
} as const;

/** Ends a command with a code and a sentence that says what to do. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}
