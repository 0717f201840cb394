import { describe, expect, it } from 'vitest';
import { createTranscript, renderSection } from '../../src/patterns/transcript.ts';
import type { EndedRequest } from '../../src/patterns/render-trace.ts';

function requests(operation: string, count: number): EndedRequest[] {
  return Array.from({ length: count }, (_, at) => ({
    operation,
    input: { TableName: 't', Key: { PK: { S: String(at) } } },
    failure: undefined,
  }));
}

describe('a section', () => {
  it('shows requests first, then what came of them under its heading', () => {
    const section = { heading: 'Two reads', requests: requests('GetItem', 2), result: { found: 2 } };

    expect(renderSection(section, false)).toBe(
      [
        ...['>>> GetItem t', "    key:        {PK: '0'}", ''],
        ...['>>> GetItem t', "    key:        {PK: '1'}", ''],
        ...['=== Two reads ===', '{', '  "found": 2', '}', ''],
      ].join('\n'),
    );
  });

  it('shows three requests of a kind and counts the others', () => {
    const section = {
      heading: 'Many',
      requests: [...requests('UpdateItem', 50), ...requests('GetItem', 4), ...requests('PutItem', 3)],
      result: undefined,
    };

    const text = renderSection(section, false);

    expect(text.match(/^>>> UpdateItem /gm)).toHaveLength(3);
    expect(text.match(/^>>> GetItem /gm)).toHaveLength(3);
    expect(text.match(/^>>> PutItem /gm)).toHaveLength(3);
    expect(text.match(/^\.\.\. .*$/gm)).toEqual([
      '... (+47 more UpdateItem calls not shown)',
      '... (+1 more GetItem call not shown)',
    ]);
    expect(text).toMatch(/=== Many ===\n$/);
  });

  it('shows all of them when asked to', () => {
    const text = renderSection({ heading: 'Many', requests: requests('UpdateItem', 50), result: null }, true);

    expect(text.match(/^>>> UpdateItem /gm)).toHaveLength(50);
    expect(text).not.toContain('not shown');
  });
});

describe('a transcript', () => {
  it('hands out requests once, in the order of sending, each with its end', async () => {
    // Arrange
    const transcript = createTranscript();
    const slow = Promise.withResolvers<unknown>();
    const fault = new Error('refused by the test');
    transcript.trace({ operation: 'First', input: {}, failure: slow.promise });
    transcript.trace({ operation: 'Second', input: {}, failure: Promise.resolve(fault) });

    // Act
    const taken = transcript.take();
    slow.resolve(undefined);

    // Assert
    expect(await taken).toEqual([
      { operation: 'First', input: {}, failure: undefined },
      { operation: 'Second', input: {}, failure: fault },
    ]);
    expect(await transcript.take()).toEqual([]);
  });
});
