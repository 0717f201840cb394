import {
  createOnlyonceEffect,
  InvalidMessageError,
  plus,
  type EffectAnswer,
  type EffectCallStore,
} from '../src/index.ts';

interface Payment {
  readonly amountMinor: number;
}

/** POST with the header Idempotency-Key; `memberId` is who has signed in. */
export function createPayments(store: EffectCallStore): (request: Request, memberId: string) => Promise<Response> {
  const once = createOnlyonceEffect(store, { scope: 'payments', callersRetryForDays: 7 });

  return async (request, memberId) => {
    const header = request.headers.get('Idempotency-Key');
    if (header === null) return Response.json({ error: 'Idempotency-Key is missing' }, { status: 400 });
    const payment = (await request.json()) as Payment;
    try {
      const answer = await once(
        // Callers choose their keys, so each has a room of its own: nobody is answered with another's response.
        `${memberId}/${header}`,
        ({ commitWith }) => {
          const change = { set: { balance: plus(payment.amountMinor, 0) } };
          // Committed in one transaction with the record of this key: both or neither.
          commitWith({ kind: 'update', label: 'balance', key: { PK: `MEMBER#${memberId}`, SK: 'BALANCE' }, change });
          return { paid: payment.amountMinor };
        },
        { payload: payment, signal: request.signal },
      );
      return responseTo(answer);
    } catch (error) {
      // A key that is too long, or a payload that cannot be compared. All other errors are the server's.
      if (error instanceof InvalidMessageError) return Response.json({ error: error.message }, { status: 400 });
      throw error;
    }
  };
}

function responseTo(answer: EffectAnswer<unknown>): Response {
  switch (answer.kind) {
    case 'completed':
    case 'replayed':
      return Response.json(answer.response);
    case 'replayedDigest':
      return Response.json({ done: true });
    case 'inProgress': {
      const seconds = Math.ceil(answer.retryAfterMs / 1_000);
      return Response.json({ error: 'in progress' }, { status: 409, headers: { 'Retry-After': String(seconds) } });
    }
    case 'conflict':
      return Response.json({ error: 'this key was used for another payment' }, { status: 422 });
  }
}
