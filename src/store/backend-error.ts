/** Turns what the SDK throws into this package's error, sorted by class. */
import { classifyFault, faultName, isRetryable } from '../aws-fault.ts';
import { BackendError, messageOf } from '../errors.ts';

const MAX_MESSAGE_CHARACTERS = 300;

export function toBackendError(error: unknown): BackendError {
  if (error instanceof BackendError) return error;
  const reason = classifyFault(error);
  // Some emulators dump whole structures into their texts.
  const message = `DynamoDB: ${faultName(error)}: ${messageOf(error)}`.slice(0, MAX_MESSAGE_CHARACTERS);
  return new BackendError(message, { reason, retryable: isRetryable(reason), cause: error });
}
