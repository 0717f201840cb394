/** A refusal in the shape in which DynamoDB puts it on the wire. It never leaves this folder as an exception. */

export class ServiceError extends Error {
  /** For example `ValidationException`; the SDK makes it the error's name. */
  readonly type: string;
  readonly status: number;
  /** What the error carries beside its text, for example `Item`. */
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(
    type: string,
    message: string,
    options: { readonly status?: number; readonly fields?: Readonly<Record<string, unknown>> } = {},
  ) {
    super(message);
    this.type = type;
    this.status = options.status ?? 400;
    this.fields = options.fields ?? {};
  }
}

export function invalid(message: string): ServiceError {
  return new ServiceError('ValidationException', message);
}

/** What real DynamoDB can and this one cannot: said plainly, so that nobody takes a wrong answer for a right one. */
export function unsupported(what: string): ServiceError {
  return new ServiceError('ValidationException', `the in-memory DynamoDB does not support ${what}`);
}
