/**
 * `npm run fuzz`: checks on random configurations the properties that must hold for all configurations. Prints each violation
 * with its seed, reduced to a short text.
 *
 * Usage: node test/fuzz/fuzz.ts [--count N] [--from SEED] [--seconds S]. The default is a million texts and no time limit.
 */
import { parseArgs } from 'node:util';
import { SeededChance } from './chance.ts';
import { type Corpus, readCorpus, type Seed } from './corpus.ts';
import { mutatedText } from './mutate.ts';
import { checkProperties } from './properties.ts';

/** A violated property. */
export interface Finding {
	readonly seed: number;
	readonly format: Seed['format'];
	/** The shortest text found that violates the property. */
	readonly text: string;
	readonly why: string;
}

export interface FuzzOptions {
	readonly count: number;
	readonly from: number;
	/** Milliseconds after which no further text is tried. */
	readonly time: number;
	/** Called regularly with the number of texts tried. */
	readonly progress?: (tried: number) => void;
	/** Number of findings after which the run ends. */
	readonly most?: number;
}

/** Tries random texts. Returns the first finding of each kind. */
export async function fuzz(options: FuzzOptions): Promise<{ tried: number; findings: Finding[] }> {
	const corpus = readCorpus();
	const end = performance.now() + options.time;
	const findings = new Map<string, Finding>();
	let tried = 0;
	for (; tried < options.count && performance.now() < end && findings.size < (options.most ?? 20); tried++) {
		const seed = options.from + tried;
		const made = make(seed, corpus);
		const why = await failure(made);
		if (tried % 1000 === 999) options.progress?.(tried + 1);
		if (why === undefined) continue;
		const kind = kindOf(why);
		if (findings.has(kind)) continue;
		findings.set(kind, { seed, format: made.format, text: await shortened(made, kind), why });
	}
	return { tried, findings: [...findings.values()] };
}

function make(seed: number, corpus: Corpus): Seed {
	return mutatedText(new SeededChance(seed), corpus);
}

async function failure(made: Seed): Promise<string | undefined> {
	try {
		await checkProperties(made);
		return undefined;
	} catch (error) {
		const { name, message, stack } = error as Error;
		const frame =
			name === 'Error' ? '' : (/\n\s+at (.*)/.exec(stack ?? '')?.[1] ?? '').replace(/\(.*\/(?=[^/]+\/[^/]+$)/, '(');
		return `${message}${frame === '' ? '' : ` at ${frame}`}`;
	}
}

/** Returns the kind of a failure. Failures whose messages differ only in numbers and quoted names are of the same kind. */
function kindOf(why: string): string {
	return why.replace(/\d+|`[^`]*`|"[^"]*"/g, '…').slice(0, 120);
}

/** Removes parts of a text as long as a failure of the same kind remains. Returns the shortest text found. */
async function shortened({ format, text }: Seed, kind: string): Promise<string> {
	const end = performance.now() + 10_000;
	let short = text;
	for (let length = short.length >> 1; length >= 1; length >>= 1) {
		for (let at = 0; at < short.length && performance.now() < end; ) {
			const without = short.slice(0, at) + short.slice(at + length);
			const why = without === short ? undefined : await failure({ format, text: without });
			if (why !== undefined && kindOf(why) === kind) short = without;
			else at += length;
		}
	}
	return short;
}

if (import.meta.main) {
	const { values } = parseArgs({
		options: { count: { type: 'string' }, from: { type: 'string' }, seconds: { type: 'string' } },
	});
	const startedAt = performance.now();
	const { tried, findings } = await fuzz({
		count: Number(values.count ?? 1_000_000),
		from: Number(values.from ?? 1),
		time: values.seconds === undefined ? Number.POSITIVE_INFINITY : Number(values.seconds) * 1000,
		progress: done => {
			if (done % 20_000 === 0) console.log(`${done} tried`);
		},
	});
	for (const { seed, format, text, why } of findings)
		console.log(`seed ${seed}, ${format}: ${why}\n${JSON.stringify(text)}\n`);
	console.log(
		`${tried} texts in ${Math.round((performance.now() - startedAt) / 1000)} s, ${findings.length} kinds of failure`,
	);
	process.exitCode = findings.length === 0 ? 0 : 1;
}
