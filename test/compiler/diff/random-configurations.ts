/** Random configurations and requests, for tests of `svc diff`. */

/** A source of random numbers from 0 up to, but not including, 1. */
export type Random = () => number;

/** Returns a reproducible source of random numbers. */
export function seededRandom(seed: number): Random {
	let state = seed | 0;
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
	};
}

const PATHS = ['/', '/a', '/a/*', '/a/b', '/a/b/*', '/b*', '/c/*/d', '*.php', '/api/*', '/x'];
const METHODS = ['GET', 'POST', 'PUT', 'DELETE'];
const FIELDS = ['X-One', 'X-Two', 'Accept'];
const VALUES = ['1', '2', 'text/*', 'a*'];
const PARAMETERS = ['p', 'q'];
const ADDRESSES = ['10.0.0.0/8', '192.0.2.7', '127.0.0.1'];
const HOSTS = ['a.test', 'b.test', '*.c.test'];

function pick<T>(random: Random, of: readonly T[]): T {
	return of[Math.floor(random() * of.length)]!;
}

/** Returns the lines of a site with some random directives. */
export function randomLines(random: Random, port: number): string[] {
	const lines: string[] = [`http://${pick(random, HOSTS)}:${port}, http://:${port} {`];
	const count = 2 + Math.floor(random() * 6);
	for (let i = 0; i < count; i++) lines.push(...randomStatement(random, 1));
	lines.push('\trespond "the end"', '}');
	return lines;
}

/** Returns the lines after one random change, which replaces, removes, adds or moves a line. */
export function changeLines(random: Random, lines: readonly string[]): string[] {
	const statements: string[][] = [];
	for (const line of lines.slice(1, -2)) {
		if (/^\t\S/.test(line) && line !== '\t}' && !line.startsWith('\t} else')) statements.push([line]);
		else statements.at(-1)!.push(line);
	}
	const at = Math.floor(random() * statements.length);
	const kind = random();
	if (kind < 0.4 || statements.length < 2) statements[at] = randomStatement(random, 1);
	else if (kind < 0.6) statements.splice(at, 1);
	else if (kind < 0.8) statements.splice(at, 0, randomStatement(random, 1));
	else {
		const [moved] = statements.splice(at, 1);
		statements.splice(Math.floor(random() * (statements.length + 1)), 0, moved!);
	}
	return [lines[0]!, ...statements.flat(), ...lines.slice(-2)];
}

function randomStatement(random: Random, depth: number): string[] {
	const tab = '\t'.repeat(depth);
	const when = condition(random);
	switch (Math.floor(random() * (depth > 2 ? 5 : 7))) {
		case 0:
			return [
				`${tab}when ${when} {`,
				`${tab}\trespond "${pick(random, ['one', 'two', '{path} {query}'])}" ${pick(random, ['200', '404'])}`,
				`${tab}}`,
			];
		case 1:
			return [`${tab}when ${when} {`, `${tab}\theader X-Out ${pick(random, ['a', 'b', '{method}'])}`, `${tab}}`];
		case 2:
			return [
				`${tab}when ${when} {`,
				`${tab}\tredir * ${pick(random, ['/x', 'https://z.test{uri}'])} ${pick(random, ['301', '302'])}`,
				`${tab}}`,
			];
		case 3:
			return [`${tab}when ${when} {`, `${tab}\trewrite * ${pick(random, ['/a/b', '/x?p=1', '/b{uri}'])}`, `${tab}}`];
		case 4:
			return [`${tab}vars v${Math.floor(random() * 2)} ${pick(random, ['{header.X-One}', 'x'])}`];
		default:
			return [
				`${tab}when ${when} {`,
				...randomStatement(random, depth + 1),
				`${tab}} else {`,
				...randomStatement(random, depth + 1),
				`${tab}}`,
			];
	}
}

function condition(random: Random): string {
	const one = (): string => {
		const matcher = ((): string => {
			switch (Math.floor(random() * 6)) {
				case 0:
					return `method ${pick(random, METHODS)}`;
				case 1:
					return `header ${pick(random, FIELDS)} ${pick(random, VALUES)}`;
				case 2:
					return `query ${pick(random, PARAMETERS)}=${pick(random, ['1', '*'])}`;
				case 3:
					return `remote_ip ${pick(random, ADDRESSES)}`;
				default:
					return `path ${pick(random, PATHS)}`;
			}
		})();
		return random() < 0.2 ? `not ${matcher}` : matcher;
	};
	return random() < 0.3 ? `${one()} ${pick(random, ['and', 'or'])} ${one()}` : one();
}

/** The properties of a random request. */
export interface RandomRequest {
	readonly method: string;
	readonly host: string;
	readonly target: string;
	readonly headers: readonly (readonly [name: string, value: string])[];
	readonly from: string;
}

/** Returns a random request for a path and host that {@link randomLines} uses, or for a similar one. */
export function randomRequest(random: Random): RandomRequest {
	const path = pick(random, [
		'/',
		'/a',
		'/a/',
		'/a/b',
		'/a/b/c',
		'/b',
		'/bb/c',
		'/c/x/d',
		'/i.php',
		'/api/',
		'/api/x',
		'/x',
		'/y',
	]);
	const query = pick(random, ['', '?p=1', '?p=2', '?q=1', '?p=1&q=3']);
	const headers = FIELDS.flatMap(name =>
		random() < 0.4 ? [[name, pick(random, ['1', '2', 'text/html', 'abc'])] as const] : [],
	);
	return {
		method: pick(random, METHODS),
		host: pick(random, ['a.test', 'b.test', 'x.c.test', 'other.test']),
		target: path + query,
		headers,
		from: pick(random, ['127.0.0.1', '10.1.2.3', '192.0.2.7', '198.51.100.1']),
	};
}
