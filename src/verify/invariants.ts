/** What must hold, always, as pure functions: they are given what was found and say whether it is right. */

/** One statement, and whether what was found bears it out. */
export interface Invariant {
  readonly id: string;
  readonly statement: string;
  readonly ok: boolean;
  /** How many things were looked at: a statement about nothing proves nothing. */
  readonly evidence: number;
  /** The first few that break it, for people. */
  readonly violations: readonly string[];
}

const MAX_VIOLATIONS = 10;

export function invariant(id: string, statement: string, found: { evidence: number; violations: string[] }): Invariant {
  return {
    id,
    statement,
    ok: found.violations.length === 0,
    evidence: found.evidence,
    violations: found.violations.slice(0, MAX_VIOLATIONS),
  };
}

/** Groups by a text; keeps the order in which groups first appear. */
export function groupBy<Thing>(things: readonly Thing[], nameOf: (thing: Thing) => string): Map<string, Thing[]> {
  const groups = new Map<string, Thing[]>();
  for (const thing of things) {
    const name = nameOf(thing);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [thing]);
    else group.push(thing);
  }
  return groups;
}
