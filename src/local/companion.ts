/**
 * Finds `onlyonce-local-backends`, the package that holds the local servers. It is loaded by name at run time and never
 * imported, so that a production install of onlyonce carries no emulator.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { EnvironmentError, messageOf } from '../errors.ts';

/** The one package to add where local servers are wanted. */
const COMPANION_PACKAGE = 'onlyonce-local-backends';

/** One request handed to the SQS application without a network. */
interface QueueAppRequest {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers?: Record<string, string>;
  readonly payload?: Buffer | string;
}

/** What the SQS application answers. */
interface QueueAppResponse {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, number | string | string[] | undefined>>;
  readonly rawPayload: Buffer;
}

/** An SQS in the memory of this process that listens nowhere. */
export interface QueueApp {
  inject(request: QueueAppRequest): Promise<QueueAppResponse>;
  close(): Promise<unknown>;
}

/** What the companion package exports. */
export interface Companion {
  buildQueueApp(): Promise<QueueApp>;
  dynoxideBinary(): string | undefined;
}

/** The path of the companion's main file, or undefined when it is not installed. */
export type CompanionResolver = () => string | undefined;

/** Looks from onlyonce itself first, then from the project in the working directory (a global or linked onlyonce). */
const resolveCompanion: CompanionResolver = () => {
  for (const base of [import.meta.url, join(process.cwd(), 'package.json')]) {
    try {
      return createRequire(base).resolve(COMPANION_PACKAGE);
    } catch {
      // Not installed there; the next place may have it.
    }
  }
  return undefined;
};

/**
 * Loads the companion package.
 * @throws {EnvironmentError} when it is missing, broken, or of another version; the text says what to do.
 */
export async function loadCompanion(resolve: CompanionResolver = resolveCompanion): Promise<Companion> {
  const path = resolve();
  if (path === undefined) throw new EnvironmentError(missingText());
  let loaded: unknown;
  try {
    loaded = await import(pathToFileURL(path).href);
  } catch (cause) {
    const text = `${COMPANION_PACKAGE} is installed but could not be loaded: ${messageOf(cause)}`;
    throw new EnvironmentError(`${text}\nInstall it again: ${installCommand()}`, { cause });
  }
  if (!isCompanion(loaded)) {
    throw new EnvironmentError(
      `${COMPANION_PACKAGE} does not fit this version of onlyonce.\nInstall the one that does: ${installCommand()}`,
    );
  }
  return loaded;
}

function isCompanion(value: unknown): value is Companion {
  if (typeof value !== 'object' || value === null) return false;
  if (!('buildQueueApp' in value) || !('dynoxideBinary' in value)) return false;
  return typeof value.buildQueueApp === 'function' && typeof value.dynoxideBinary === 'function';
}

function installCommand(): string {
  return `npm install --save-dev ${COMPANION_PACKAGE}`;
}

function missingText(): string {
  return [
    'The local SQS and DynamoDB are in a package of their own, which is not installed. One of these helps:',
    `  ${installCommand()}`,
    '  docker compose up   (docker-compose.yml starts both in containers)',
    '  set AWS_ENDPOINT_URL_SQS and AWS_ENDPOINT_URL_DYNAMODB to servers that already run',
  ].join('\n');
}
