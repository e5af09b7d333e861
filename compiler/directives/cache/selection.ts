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

/** Names and values, one after the other. */
export function selectingValues(names: readonly string[], request: HeaderList): string[] {
	const values: string[] = [];
	for (const name of names) values.push(name, normalized(name, request.combined(name)));
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
		if (normalized(selecting[i]!, request.combined(selecting[i]!)) !== selecting[i + 1]) return false;
	}
	return true;
}

/** A value as it selects: what only looks different is made the same. A field that is not there is '\0', which none can be. */
export function normalized(name: string, value: string | undefined): string {
	if (value === undefined) return '\0';
	if (name === 'accept-encoding') return acceptedCodings(value);
	const text = value
		.trim()
		.replace(/[ \t]*,[ \t]*/g, ',')
		.replace(/[ \t]+/g, ' ');
	return name === 'accept' || name === 'accept-language' ? text.toLowerCase() : text;
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
