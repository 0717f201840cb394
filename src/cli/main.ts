/** The command line: builds the program, runs one command, and turns every end into an exit code. */
import { CommanderError } from 'commander';
import { classifyFault } from '../aws-fault.ts';
import { BackendError, ConfigurationError, isOnlyonceError, messageOf } from '../errors.ts';
import { CommandError, EXIT } from './exit-codes.ts';
import { createProgram } from './program.ts';

// Whoever read our output has gone (`| head`): what is under way still ends in order.
process.stdout.on('error', ignoreClosedPipe);
process.stderr.on('error', ignoreClosedPipe);

try {
  await createProgram().parseAsync(process.argv);
} catch (error) {
  process.exitCode = exitCodeOf(error);
  // Commander has already written what it has to say.
  if (!(error instanceof CommanderError)) process.stderr.write(`onlyonce: ${messageOf(error)}${adviceFor(error)}\n`);
  if (!isExpected(error)) process.stderr.write(`${error instanceof Error ? (error.stack ?? '') : ''}\n`);
}

function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
}

/** What the SDK and the system say names a fault; this says what to do about it. */
function adviceFor(error: unknown): string {
  const isUnreachable =
    error instanceof BackendError ? error.reason === 'unreachable' : classifyFault(error) === 'unreachable';
  if (isUnreachable) return '\nNothing answers there: check the endpoints, or start local ones with "onlyonce up".';
  return lacksRegion(error) ? ': name one with --region or AWS_REGION' : '';
}

function lacksRegion(error: unknown): boolean {
  return messageOf(error) === 'Region is missing';
}

/** A file that was named and cannot be used: its text holds the path. */
function isFileFault(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && 'path' in error;
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (error instanceof CommandError) return error.exitCode;
  if (error instanceof ConfigurationError || lacksRegion(error)) return EXIT.usage;
  if (error instanceof BackendError && error.reason === 'notFound') return EXIT.notFound;
  return EXIT.failure;
}

function isExpected(error: unknown): boolean {
  return (
    error instanceof CommanderError ||
    error instanceof CommandError ||
    isOnlyonceError(error) ||
    isFileFault(error) ||
    lacksRegion(error) ||
    // The backend is away or refuses: the text says it, a stack would only hide it.
    classifyFault(error) !== 'unknown'
  );
}
