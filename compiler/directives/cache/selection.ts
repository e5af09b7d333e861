/** Which of several stored responses answers a request: `Vary`, with fields that mean the same made the same (RFC 9111 §4.1). */
import type { HeaderList } from '../../exchange/header-list.ts';
import type { CachedResponse } from '../../exchange/response-cache.ts';

/** Codings that responses come in, in the order in which they are named. */
const CODINGS = ['zstd', 'br', 'gzip', 'deflate'] as const;

/** Names in lower case of the fields that select a response: those of its `Vary`, and those of the configuration. */
export function selectingNames(headers: HeaderList, always: readonly string[]): readonly string[] {
	const vary = headers.combined('vary');
	if (vary === undefined) return always;
	const names = new Set(always);
	for (const part of vary.toLowerCase().split(',')) {
		const name = part.trim();
		if (name !== '') names.add(name);
	}
	return [...names].sort();
}

/** More fields than this in a `Vary` is no selection any more. */
export const MOST_SELECTING = 32;

/** Begins a value that is compared as it came. */
const AS_IT_CAME = '\u0001';

/**
 * Names and values, one after the other, for a response that came with these fields: one in a coding that few know is for
 * those who name just the same codings.
 */
export function selectingValues(names: readonly string[], request: HeaderList, response: HeaderList): string[] {
	const values: string[] = [];
	const isKnown = (response.combined('content-encoding') ?? '')
		.toLowerCase()
		.split(',')
		.every(coding => ['', 'identity', 'x-gzip', ...CODINGS].includes(coding.trim()));
	for (const name of names) {
		const value = request.combined(name);
		if (name !== 'accept-encoding' || isKnown || value === undefined) values.push(name, normalized(name, value));
		else values.push(name, AS_IT_CAME + value);
	}
	return values;
}

/** The newest of the stored responses that were selected by what this request says too. */
export function select(stored: readonly CachedResponse[], request: HeaderList): CachedResponse | undefined {
	let found: CachedResponse | undefined;
	for (let i = 0; i < stored.length; i++) {
		const one = stored[i]!;
		if (!matches(one.head.selecting, request)) continue;
		if (found === undefined || one.head.storedAt > found.head.storedAt) found = one;
	}
	return found;
}

function matches(selecting: readonly string[], request: HeaderList): boolean {
	for (let i = 0; i < selecting.length; i += 2) {
		const wanted = selecting[i + 1]!;
		const value = request.combined(selecting[i]!);
		const is = wanted.startsWith(AS_IT_CAME) ? AS_IT_CAME + value : normalized(selecting[i]!, value);
		if (is !== wanted) return false;
	}
	return true;
}

/** Lists whose parts mean the same with other spaces between them. Of other fields nobody here knows what a comma means. */
const LISTS: ReadonlySet<string> = new Set(['accept', 'accept-charset', 'accept-language', 'cache-control', 'te']);

/** A value as it selects: what only looks different is made the same. A field that is not there is '\0', which none can be. */
export function normalized(name: string, value: string | undefined): string {
	if (value === undefined) return '\0';
	if (name === 'accept-encoding') return acceptedCodings(value);
	if (!LISTS.has(name)) return value.trim();
	const text = value
		.trim()
		.replace(/[ \t]*,[ \t]*/g, ',')
		.replace(/[ \t]+/g, ' ');
	// Media types may have parameters whose case counts.
	return name === 'accept-language' ? text.toLowerCase() : text;
}

/** The codings that a client takes, without their order and weights. */
function acceptedCodings(value: string): string {
	const text = value.toLowerCase();
	const taken: string[] = [];
	let rest = true;
	let anything = false;
	const named = new Map<string, boolean>();
	for (const part of text.split(',')) {
		const [coding, ...parameters] = part.split(';');
		const refused = parameters.some(one => /^[ \t]*q=0(?:\.0{0,3})?[ \t]*$/.test(one));
		const name = coding!.trim();
		if (name === '*') anything = !refused;
		if (name === 'identity' || name === '*')
			rest = name === 'identity' ? !refused : rest && !(refused && !named.has('identity'));
		named.set(name === 'x-gzip' ? 'gzip' : name, !refused);
	}
	for (const coding of CODINGS) if (named.get(coding) ?? anything) taken.push(coding);
	return `${taken.join(',')}${rest ? '' : ';identity=0'}`;
}
