/** Writes `map`, `geo` and `split_clients` as snippets with a `map`, which the sites that read their variables use. */
import { type ConfigfileWriter, quoted, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { escapedRegexp, regexpOf, translated, Variables } from './nginx-values.ts';
import { Untranslatable } from './untranslatable.ts';

interface MapEntry {
	readonly directive: NginxDirective;
	readonly variable: string;
	/** The snippet; undefined before it is written. */
	snippet: string | undefined;
}

/** The maps of a configuration. They are written when a site first reads one. */
export class MapTable {
	readonly #out: ConfigfileWriter;
	readonly #entries = new Map<string, MapEntry>();
	readonly #variables: Variables;
	readonly #written = new Map<string, readonly string[]>();

	constructor(http: readonly NginxDirective[], out: ConfigfileWriter, remoteAddress: string) {
		this.#out = out;
		for (const directive of http) {
			const variable = directive.args.at(-1)?.replace(/^\$/, '');
			if (directive.name !== 'map' || !directive.block || variable === undefined) continue;
			this.#entries.set(variable, { directive, variable, snippet: undefined });
		}
		this.#variables = new Variables([
			name => (['remote_addr', 'binary_remote_addr'].includes(name) ? remoteAddress : undefined),
			name => (this.#entries.has(name) ? `{${placeholderName(name)}}` : undefined),
		]);
	}

	/** Returns the placeholder of a map's variable, and the snippets that define it; undefined if no map has this name. Throws Untranslatable. */
	placeholder(name: string): { readonly placeholder: string; readonly snippets: readonly string[] } | undefined {
		const entry = this.#entries.get(name);
		if (!entry) return undefined;
		return { placeholder: `{${placeholderName(name)}}`, snippets: this.#snippetsOf(entry, []) };
	}

	/** Returns the values that a map may give; undefined if they are not constant. */
	values(name: string): readonly string[] | undefined {
		const lines = this.#entries.get(name)?.directive.block;
		const values = lines?.filter(line => !FLAGS.has(line.name)).map(({ args }) => args[0] ?? '');
		return values?.some(value => value.includes('$')) ? undefined : values;
	}

	/** Writes the definitions of all maps that sites use. */
	write(): void {
		for (const [name, lines] of this.#written) {
			this.#out.block(`(${name})`, () => {
				for (const line of lines) this.#out.line(line);
			});
			this.#out.line('');
		}
	}

	#snippetsOf(entry: MapEntry, above: readonly MapEntry[]): readonly string[] {
		if (above.includes(entry)) throw new Untranslatable(`the map of \`$${entry.variable}\` refers to itself`);
		const lines = entry.directive.block!;
		const used = new Set([entry.directive.args[0] ?? '', ...lines.flatMap(({ args }) => args)].join(' ').match(/\w+/g));
		const inner = [...this.#entries.values()].filter(other => other !== entry && used.has(other.variable));
		const below = inner.flatMap(other => this.#snippetsOf(other, [...above, entry]));
		if (entry.snippet === undefined) {
			const name = placeholderName(entry.variable);
			this.#written.set(name, this.#linesOf(entry));
			entry.snippet = name;
			this.#out.count(entry.directive);
			for (const line of lines) this.#out.count(line);
		}
		return [...new Set([...below, entry.snippet])];
	}

	#linesOf({ directive, variable }: MapEntry): string[] {
		const source = directive.args[0] ?? '';
		const exact: string[] = [];
		const hosts: string[] = [];
		const regexps: string[] = [];
		const defaults: string[] = [];
		const isHostnames = directive.block!.some(({ name }) => name === 'hostnames');
		const isLowered = /^\$(?:host|server_name|scheme)$/.test(source);
		for (const { name, args } of directive.block!) {
			if (name === 'hostnames' || name === 'volatile') continue;
			const output = this.#outputOf(args[0] ?? '', name);
			if (name === 'default') defaults.push(`default ${output}`);
			else if (name.startsWith('~')) {
				const ignoresCase = name.startsWith('~*');
				regexps.push(`${quoted(`~${regexpOf(name.slice(ignoresCase ? 2 : 1), ignoresCase)}`)} ${output}`);
			} else if (isHostnames && /^\*?\.|\.\*$/.test(name)) {
				const middle = escapedRegexp(name.replace(/^\*?\./, '').replace(/\.\*$/, ''));
				const before = name.startsWith('.') ? '^(?:.+\\.)?' : name.startsWith('*') ? '^.+\\.' : '^';
				hosts.push(`${quoted(`~(?i)${before}${middle}${name.endsWith('*') ? '\\.[^.]' : '$'}`)} ${output}`);
			} else {
				const text = name.replace(/^\\(?=[~*.]|default|hostnames|volatile|include)/, '');
				// nginx compares without regard to case.
				const isSame = text.toLowerCase() === text.toUpperCase() || (isLowered && text === text.toLowerCase());
				exact.push(`${quoted(isSame && !text.startsWith('~') ? text : `~(?i)^${escapedRegexp(text)}$`)} ${output}`);
			}
		}
		const subject = translated(source, this.#variables);
		if (!/^\{[^{}]+\}$/.test(subject) && subject.includes('\\'))
			throw new Untranslatable('its source is not one that the import knows');
		return [
			`map ${word(subject)} {${placeholderName(variable)}} {`,
			...[...exact, ...hosts, ...regexps, ...defaults].map(line => `\t${line}`),
			'}',
		];
	}

	/** Returns the output of a line. Groups of a regular expression are `${1}` there. */
	#outputOf(value: string, input: string): string {
		if (value === '-') throw new Untranslatable('a value `-` means something else here');
		const groups = new Set([...input.matchAll(/\(\?P?<(\w+)>/g)].map(([, name]) => name!));
		const known = input.startsWith('~')
			? value.replace(/\$\{?(\w+)\}?/g, (text, name: string) =>
					/^\d$/.test(name) || groups.has(name) ? `\uE000${name}\uE001` : text,
				)
			: value;
		return quoted(translated(known, this.#variables).replace(/\uE000(\w+)\uE001/g, '$${$1}'));
	}
}

const FLAGS: ReadonlySet<string> = new Set(['hostnames', 'volatile']);

/** Returns the name of a map's placeholder. It must not be that of a built-in one. */
function placeholderName(variable: string): string {
	return `map_${variable}`;
}
