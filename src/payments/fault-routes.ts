/** The endpoints that tell the local provider to misbehave, and that show what it holds back. */
import { z } from 'zod';
import { RequestRefusedError, readJson, readNumber, sendJson } from './http-json.ts';
import { faultRuleSchema } from './provider-faults.ts';
import type { Exchange, ProviderParts } from './provider-route.ts';

const MAX_WATCH_MS = 60_000;

export async function addFault({ faults }: ProviderParts, { request, response }: Exchange): Promise<void> {
  const rule = faults.add(await readJson(request, faultRuleSchema));
  if (rule === 'id-taken') throw new RequestRefusedError(409, 'id_taken', 'a rule with this id exists');
  if (rule === 'full') throw new RequestRefusedError(409, 'too_many_rules', 'no more rules; DELETE /_faults first');
  sendJson(response, 201, rule);
}

export function listFaults({ faults, waiting }: ProviderParts, { response }: Exchange): void {
  const held = waiting.held();
  const rules = faults.list().map((rule) => ({ ...rule, held: held.filter(({ ruleId }) => ruleId === rule.id) }));
  sendJson(response, 200, { rules });
}

export function clearFaults({ faults, waiting }: ProviderParts, { response }: Exchange): void {
  faults.clear();
  waiting.releaseAll();
  sendJson(response, 200, { cleared: true });
}

const releaseSchema: z.ZodType<{ id: string }> = z.strictObject({ id: z.string().min(1).max(100) });

/** Takes the id of a rule (all that it holds) or of one held request. */
export async function releaseHeld({ faults, waiting }: ProviderParts, { request, response }: Exchange): Promise<void> {
  const { id } = await readJson(request, releaseSchema);
  const released = waiting.release(id);
  if (released === 0 && !faults.has(id)) {
    throw new RequestRefusedError(404, 'not_found', 'no rule and no held request has this id');
  }
  sendJson(response, 200, { released });
}

/** `wait` in ms (0-60000, default 0); `after` is the highest sequence already seen (default 0). */
export async function watchHeld({ waiting }: ProviderParts, { response, url, gone }: Exchange): Promise<void> {
  const waitMs = readNumber(url, 'wait', MAX_WATCH_MS);
  const after = readNumber(url, 'after', Number.MAX_SAFE_INTEGER);
  const held = await waiting.watch(after, waitMs, gone);
  if (held === 'full') throw new RequestRefusedError(503, 'too_many_watchers', 'too many wait for held requests');
  sendJson(response, 200, { held });
}
