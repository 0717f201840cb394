/**
 * Makes the handler of one charge fail for good. No valid charge does that by itself: what the provider declines is an
 * answer, and is recorded as rejected. So the local provider is told to fail each request for it before it charges.
 */
import { isLocal } from '../endpoints.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import type { InjectScope } from './scope.ts';

/** More than any worker tries. The rule ends with the provider. */
const TIMES = 1_000_000;
const CONFLICT = 409;

export async function poisonCharge({ providerUrl, signal }: InjectScope, requestId: string): Promise<void> {
  const url = faultsUrl(providerUrl);
  const id = `inject-${requestId}`;
  const rule = { id, match: { reference: requestId }, effect: 'fail-before', times: TIMES };
  const init = {
    method: 'POST',
    redirect: 'manual',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(rule),
    signal,
  } as const;
  const response = await fetch(url, init).catch((cause: unknown) => {
    if (signal.aborted) throw cause;
    throw new CommandError(
      EXIT.failure,
      `no payment provider answers at ${url.host}: start one with "onlyonce up" or "onlyonce up --provider-only"`,
    );
  });
  const answer = await response.text();
  if (response.ok) return;
  // An earlier run with this seed: the rule is there.
  if (response.status === CONFLICT && answer.includes('id_taken')) return;
  const advice =
    response.status === CONFLICT
      ? 'it holds as many faults as it can: send DELETE /_faults to it'
      : 'only the local payment provider can be told to fail';
  throw new CommandError(EXIT.failure, `${url.host} answered ${String(response.status)}: ${advice}`);
}

function faultsUrl(providerUrl: string | undefined): URL {
  if (providerUrl === undefined) {
    const advice = 'set ONLYONCE_PROVIDER_URL, which "onlyonce up" prints';
    throw new CommandError(EXIT.usage, `poison tells the local payment provider to fail: ${advice}`);
  }
  if (!URL.canParse(providerUrl)) {
    throw new CommandError(EXIT.usage, `"${providerUrl}" is not a URL: a provider looks like http://127.0.0.1:4570`);
  }
  if (!isLocal(providerUrl)) {
    const { host } = new URL(providerUrl);
    throw new CommandError(EXIT.usage, `poison only works with the local payment provider, and ${host} is not local`);
  }
  return new URL('/_faults', providerUrl);
}
