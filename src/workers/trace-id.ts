/** The trace that a message belongs to, so that its dead letter can be found from there. Pure. */
import type { Delivery } from './delivery.ts';

/** @see W3C Trace Context, "traceparent": version, trace id, parent id, flags */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/;
/** @see AWS X-Ray, "Tracing header": `Root=1-67891233-abcdef012345678912345678;Parent=...;Sampled=1` */
const XRAY_ROOT = /(?:^|;)\s*Root=([\w-]{1,64})/;

/** Of the `traceparent` attribute that the sender set, else of the X-Ray header. Undefined when there is neither. */
export function traceIdOf(delivery: Pick<Delivery, 'attributes' | 'traceHeader'>): string | undefined {
  const traceparent = delivery.attributes['traceparent']?.StringValue ?? '';
  return TRACEPARENT.exec(traceparent)?.[1] ?? XRAY_ROOT.exec(delivery.traceHeader ?? '')?.[1];
}
