/** The definition of a placeholder or a family of placeholders. Definitions are registered in placeholders/index.ts. */
import type { Exchange } from '../../exchange/exchange.ts';
import type { FileReader } from '../../exchange/leases.ts';

/**
 * Reads the value of a placeholder; undefined if it has none for this request. The value is data: braces in it are not expanded.
 */
export type PlaceholderReader = (x: Exchange) => unknown;

/** Facts about the machine and process for placeholders. They are injected, because the compiler does not query the system. */
export interface HostFacts {
	readonly hostname: string;
	readonly os: string;
	readonly arch: string;
	readonly workingDirectory: string;
	/** When a delayed stop will begin, in milliseconds since 1970; 0 if none is pending. Omitted if stops are never delayed. */
	readonly stopsAt?: () => number;
	/** Returns an environment variable, or undefined if it is not set. */
	env(name: string): string | undefined;
}

/** The context in which a placeholder is compiled. */
export interface PlaceholderScope {
	readonly facts: HostFacts;
	/** Returns the client's address. Behind trusted proxies, it is taken from the fields that they send. */
	readonly clientIp: (x: Exchange) => string;
	/** Reports whether `map` defines a placeholder with this full name. */
	isMapped(name: string): boolean;
	/** Returns a reader of files, for `{file.*}`. */
	files(): FileReader;
	/** Declares that the placeholder needs the whole request body, which is then read before the step runs. */
	needsBody(): void;
}

/** A placeholder or, if its name ends in `*`, a family of placeholders. */
export interface Placeholder {
	/** Full name. A `*` at the end stands for a parameter: `http.request.header.*`. */
	readonly name: string;
	/** Description in one sentence, for completion and the manual. */
	readonly summary: string;
	/**
	 * Compiles the placeholder. `parameter` is '' if it has none. A string is a constant value; undefined means that the name does
	 * not exist.
	 */
	readonly compile: (parameter: string, scope: PlaceholderScope) => PlaceholderReader | string | undefined;
}

/** Defines a placeholder without a parameter. `read` returns its value in each request. */
export function definePlaceholder(name: string, summary: string, read: PlaceholderReader): Placeholder {
	return { name, summary, compile: () => read };
}

/** Defines a family of placeholders. `compile` receives the parameter, which is never empty and contains no braces. */
export function definePlaceholderFamily(
	name: `${string}*`,
	summary: string,
	compile: (parameter: string, scope: PlaceholderScope) => PlaceholderReader | string | undefined,
): Placeholder {
	return {
		name,
		summary,
		compile: (parameter, scope) => (parameter === '' || /[{}]/.test(parameter) ? undefined : compile(parameter, scope)),
	};
}

/** Converts a placeholder's value to text: strings unchanged, numbers in decimal, null as empty, lists as `[a b]`. */
export function placeholderText(value: unknown): string {
	if (typeof value === 'string') return value;
	if (value === null || value === undefined) return '';
	if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value);
	if (value instanceof Date) return value.toISOString();
	if (value instanceof Uint8Array)
		return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('utf8');
	if (Array.isArray(value)) return `[${value.map(placeholderText).join(' ')}]`;
	return JSON.stringify(value) ?? '';
}
