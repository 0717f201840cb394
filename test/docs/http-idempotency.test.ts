import { describe, expect, it } from 'vitest';
import { createPayments } from '../../examples/http-idempotency.ts';
import { useStoreBench } from '../support/store-bench.ts';

const bench = useStoreBench();

describe('the example of an HTTP handler', () => {
  const payment = (key: string | undefined, amountMinor: number): Request =>
    new Request('http://localhost/payments', {
      method: 'POST',
      headers: key === undefined ? {} : { 'Idempotency-Key': key },
      body: JSON.stringify({ amountMinor }),
    });

  const told = async (response: Response): Promise<unknown> => [response.status, await response.json()];

  it('pays once per key and member, and says so each time', async () => {
    // Arrange
    const pay = createPayments(bench.store());
    const [ann, bob] = [bench.unique('ann'), bench.unique('bob')];
    const calls = [
      [payment('k1', 50), ann],
      [payment('k1', 50), ann],
      [payment('k2', 20), ann],
      [payment('k1', 7), bob],
      [payment('k1', 51), ann],
    ] as const;

    // Act
    const answers: unknown[] = [];
    for (const [request, member] of calls) answers.push(await told(await pay(request, member)));

    // Assert
    const conflict = [422, { error: 'this key was used for another payment' }];
    expect(answers).toEqual([
      [200, { paid: 50 }],
      [200, { paid: 50 }],
      [200, { paid: 20 }],
      [200, { paid: 7 }],
      conflict,
    ]);
    expect(await bench.truth.get({ PK: `MEMBER#${ann}`, SK: 'BALANCE' })).toMatchObject({ balance: 70 });
  });

  it('tells a caller who comes too early when to come back', async () => {
    // Arrange
    const pay = createPayments(bench.store());
    const member = bench.unique('member');
    const commit = bench.transport.fault('TransactWriteItems', { kind: 'hold' });
    const first = pay(payment('k', 50), member);
    await commit.hit;

    // Act
    const early = await pay(payment('k', 50), member);
    await commit.release();

    // Assert
    expect(await told(early)).toEqual([409, { error: 'in progress' }]);
    expect(Number(early.headers.get('Retry-After'))).toBeGreaterThan(0);
    expect(await told(await first)).toEqual([200, { paid: 50 }]);
  });

  it('refuses a key that is missing or too long', async () => {
    const pay = createPayments(bench.store());

    const answers = [await pay(payment(undefined, 50), 'm'), await pay(payment('k'.repeat(600), 50), 'm')];

    expect(answers.map(({ status }) => status)).toEqual([400, 400]);
    expect(bench.transport.seen).toEqual([]);
  });
});
