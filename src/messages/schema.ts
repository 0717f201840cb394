/**
 * Schemas of any library that follows the Standard Schema specification, version 1 (zod, valibot, arktype and others).
 * Only what is needed of it is declared here, so that no library is asked for.
 * @see https://standardschema.dev
 */
import { ConfigurationError } from '../errors.ts';

/** A schema as the specification has it. */
export interface StandardSchema<Output> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

type StandardResult<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly StandardIssue[] };

interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

export type Validated<Output> =
  { readonly kind: 'valid'; readonly value: Output } | { readonly kind: 'refused'; readonly reason: string };

/**
 * Checks a value.
 * @param prefix the name in front of each path, for example `payload`. @defaultValue none
 * @throws {ConfigurationError} when the schema validates asynchronously: a message must be read without waiting.
 * @throws whatever the schema's own code throws.
 */
export function validate<Output>(schema: StandardSchema<Output>, value: unknown, prefix?: string): Validated<Output> {
  const result = schema['~standard'].validate(value);
  if (result instanceof Promise) {
    // Nobody waits for it; its rejection must not end the process.
    result.catch(() => undefined);
    const { vendor } = schema['~standard'];
    throw new ConfigurationError('message', [{ name: 'schema', rule: 'validates without waiting', value: vendor }]);
  }
  if (result.issues === undefined) return { kind: 'valid', value: result.value };
  return { kind: 'refused', reason: result.issues.map((issue) => describe(issue, prefix)).join('; ') };
}

function describe(issue: StandardIssue, prefix?: string): string {
  const steps = (issue.path ?? []).map((step) => String(typeof step === 'object' ? step.key : step));
  const path = (prefix === undefined ? steps : [prefix, ...steps]).join('.');
  return path === '' ? issue.message : `${path}: ${issue.message}`;
}

/** True for what can be used as a schema at all. */
export function isStandardSchema(value: unknown): boolean {
  // Some libraries (arktype) make schemas that are functions.
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard: unknown = '~standard' in value ? value['~standard'] : undefined;
  return (
    typeof standard === 'object' &&
    standard !== null &&
    'validate' in standard &&
    typeof standard.validate === 'function'
  );
}
