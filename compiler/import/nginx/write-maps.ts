/** Writes `map`, `geo` and `split_clients` as snippets, which sites use if they read the variable. */

import { type ClientSample, clientSamples } from './client-samples.ts';
import { type ConfigfileWriter, quoteText, word } from './configfile-writer.ts';
import type { ImportContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { escapeRegexp, regexpOf, translateText, Variables } from './nginx-values.ts';
import { Untranslatable } from './untranslatable.ts';
import { CACHE_STATUS_LINES, CACHE_STATUS_SNIPPET } from './write-cache.ts';
import { geoLines, geoValues } from './write-geo.ts';
import { splitLines, splitValues } from './write-split-clients.ts';

interface MapEntry {
	readonly directive: NginxDirective;
	readonly variable: string;
	/** The placeholder that stands for the variable. */
	readonly placeholder: string;
	/** Name of the snippet; undefined until it is written. */
	snippetName: string | undefined;
	/** Why the directive has no counterpart; undefined if it has one, or if no site reads its variable. */
	keptReason: string | undefined;
}

/** Prefixes of the names of snippets and placeholders, by the directive that defines the variable. */
const VARIABLE_PREFIXES: { readonly [name: string]: string } = { map: 'map_', geo: 'geo_', split_clients: 'split_' };

/** The `map`, `geo` and `split_clients` blocks of a configuration. A block is translated when a site first reads its variable. */
export class MapTable {
	readonly #out: ConfigfileWriter;
	readonly #entriesByVariable = new Map<string, MapEntry>();
	readonly #variables: Variables;
	readonly #addressMatcher: string;
	readonly #linesBySnippet = new Map<string, readonly string[]>();

	constructor(httpDirectives: readonly NginxDirective[], out: ConfigfileWriter, address: ImportContext['address']) {
		this.#out = out;
		this.#addressMatcher = address.matcher;
		for (const directive of httpDirectives) {
			const variable = directive.args.at(-1)?.replace(/^\$/, '');
			const prefix = Object.hasOwn(VARIABLE_PREFIXES, directive.name) ? VARIABLE_PREFIXES[directive.name] : undefined;
			if (prefix === undefined || !directive.block || variable === undefined) continue;
			// A `map` is evaluated when its placeholder is read; the other directives set a variable.
			const placeholder = directive.name === 'map' ? `{map_${variable}}` : `{vars.${prefix}${variable}}`;
			this.#entriesByVariable.set(variable, {
				directive,
				variable,
				placeholder,
				snippetName: undefined,
				keptReason: undefined,
			});
		}
		this.#variables = new Variables([
			name => (['remote_addr', 'binary_remote_addr'].includes(name) ? address.placeholder : undefined),
			name => this.#entriesByVariable.get(name)?.placeholder,
		]);
	}

	/**
	 * Returns the placeholder of a variable and the snippets that define it; undefined if none of the blocks defines the variable.
	 * Throws Untranslatable.
	 */
	placeholder(name: string): { readonly placeholder: string; readonly snippets: readonly string[] } | undefined {
		const entry = this.#entriesByVariable.get(name);
		if (entry) return { placeholder: entry.placeholder, snippets: this.#snippetsOf(entry, []) };
		if (name !== 'upstream_cache_status') return undefined;
		this.#linesBySnippet.set(CACHE_STATUS_SNIPPET, CACHE_STATUS_LINES);
		return { placeholder: '{map_upstream_cache_status}', snippets: [CACHE_STATUS_SNIPPET] };
	}

	/** Returns the values that a variable may have; undefined if they are not constant. */
	possibleValues(name: string): readonly string[] | undefined {
		const { name: kind, block } = this.#entriesByVariable.get(name)?.directive ?? {};
		if (!block) return undefined;
		if (kind === 'geo') return geoValues(block);
		if (kind === 'split_clients') return splitValues(block);
		const outputs = block.filter(line => !MAP_FLAGS.has(line.name)).map(({ args }) => args[0] ?? '');
		return outputs.some(value => value.includes('$')) ? undefined : outputs;
	}

	/**
	 * Returns clients for which a variable has its different values; none if the variable depends on anything but the client's
	 * address, or could not be translated.
	 */
	clientSamples(name: string): readonly ClientSample[] {
		const entry = this.#entriesByVariable.get(name);
		return entry?.snippetName === undefined ? [] : clientSamples(entry.directive);
	}

	/** Writes the snippets that sites use and, as comments, the blocks that could not be translated. */
	write(): void {
		for (const [name, lines] of this.#linesBySnippet) {
			this.#out.writeBlock(`(${name})`, () => {
				for (const line of lines) this.#out.writeLine(line);
			});
			this.#out.writeLine('');
		}
		for (const { directive, keptReason: reason, snippetName: snippet } of this.#entriesByVariable.values()) {
			if (reason !== undefined) this.#out.keepAsComment(directive, reason);
			else if (snippet === undefined && directive.name === 'map' && directive.args[0] === '$http_upgrade') {
				// This `map` computes the field `Connection` for WebSockets, which `reverse_proxy` sets by itself.
				for (const line of [directive, ...directive.block!]) this.#out.countTranslated(line);
			}
		}
	}

	#snippetsOf(entry: MapEntry, ancestors: readonly MapEntry[]): readonly string[] {
		if (ancestors.includes(entry)) throw new Untranslatable(`the map of \`$${entry.variable}\` refers to itself`);
		const lines = entry.directive.block!;
		const entryText = [entry.directive.args[0] ?? '', ...lines.flatMap(({ args }) => args)].join(' ');
		const usedVariables = new Set([...entryText.matchAll(/\$\{?(\w+)/g)].map(([, name]) => name));
		const dependencies = [...this.#entriesByVariable.values()].filter(
			other => other !== entry && usedVariables.has(other.variable),
		);
		const dependencySnippets = dependencies.flatMap(other => this.#snippetsOf(other, [...ancestors, entry]));
		if (entry.snippetName === undefined) {
			const snippetName = `${VARIABLE_PREFIXES[entry.directive.name]}${entry.variable}`;
			try {
				this.#linesBySnippet.set(snippetName, this.#linesOf(entry));
			} catch (error) {
				if (error instanceof Untranslatable) entry.keptReason = error.message;
				throw error;
			}
			entry.snippetName = snippetName;
			this.#out.countTranslated(entry.directive);
			for (const line of lines) this.#out.countTranslated(line);
		}
		return [...new Set([...dependencySnippets, entry.snippetName])];
	}

	#linesOf(entry: MapEntry): string[] {
		const { directive } = entry;
		if (directive.name === 'map') return this.#mapLines(entry);
		const variable = `${VARIABLE_PREFIXES[directive.name]}${entry.variable}`;
		return directive.name === 'geo'
			? geoLines(directive, variable, this.#addressMatcher)
			: splitLines(directive, variable, this.#variables);
	}

	#mapLines({ directive, placeholder }: MapEntry): string[] {
		const sourceText = directive.args[0] ?? '';
		const exactLines: string[] = [];
		const hostLines: string[] = [];
		const regexpLines: string[] = [];
		const defaultLines: string[] = [];
		const matchesHostNames = directive.block!.some(({ name }) => name === 'hostnames');
		const isLowerCaseSource = /^\$(?:host|server_name|scheme)$/.test(sourceText);
		const caseOutputs: string[] = [];
		// In a Configfile, the output for a regular expression may contain groups but not placeholders. If an output has
		// placeholders, the first map yields the number of a case, and a second map yields the output for the case.
		const regexpLine = (regexp: string, output: string): string => {
			const inputWord = quoteText(`~${regexp}`);
			if (!/(?<![\\$])\{/.test(output)) return `${inputWord} ${output}`;
			if (output.includes('${')) throw new Untranslatable('a value has both a group and a variable');
			caseOutputs.push(output);
			return `${inputWord} "case ${caseOutputs.length}"`;
		};
		for (const { name, args } of directive.block!) {
			if (name === 'hostnames' || name === 'volatile') continue;
			const output = this.#translateOutput(args[0] ?? '', name);
			if (name === 'default') defaultLines.push(`default ${output}`);
			else if (name.startsWith('~')) {
				const ignoresCase = name.startsWith('~*');
				regexpLines.push(regexpLine(regexpOf(name.slice(ignoresCase ? 2 : 1), ignoresCase), output));
			} else if (matchesHostNames && /^\*?\.|\.\*$/.test(name)) {
				const hostPattern = escapeRegexp(name.replace(/^\*?\./, '').replace(/\.\*$/, ''));
				const hostPrefix = name.startsWith('.') ? '^(?:.+\\.)?' : name.startsWith('*') ? '^.+\\.' : '^';
				hostLines.push(regexpLine(`(?i)${hostPrefix}${hostPattern}${name.endsWith('*') ? '\\.[^.]' : '$'}`, output));
			} else {
				const inputText = name.replace(/^\\(?=[~*.]|default|hostnames|volatile|include)/, '');
				// nginx ignores case in this comparison. A text without letters, or one that is compared with lower-case values, needs
				// no regular expression.
				const isCaseIrrelevant =
					inputText.toLowerCase() === inputText.toUpperCase() ||
					(isLowerCaseSource && inputText === inputText.toLowerCase());
				exactLines.push(
					isCaseIrrelevant && !inputText.startsWith('~')
						? `${quoteText(inputText)} ${output}`
						: regexpLine(`(?i)^${escapeRegexp(inputText)}$`, output),
				);
			}
		}
		const subject = translateText(sourceText, this.#variables);
		if (!/^\{[^{}]+\}$/.test(subject) && subject.includes('\\'))
			throw new Untranslatable('the import does not recognize its source');
		const firstOutput = caseOutputs.length === 0 ? placeholder : placeholder.replace('}', '_case}');
		const lines = [
			`map ${word(subject)} ${firstOutput} {`,
			...[...exactLines, ...hostLines, ...regexpLines, ...defaultLines].map(line => `\t${line}`),
			'}',
		];
		if (caseOutputs.length === 0) return lines;
		const caseLines = caseOutputs.map((output, index) => `\t"case ${index + 1}" ${output}`);
		return [...lines, `map ${firstOutput} ${placeholder} {`, ...caseLines, `\tdefault "${firstOutput}"`, '}'];
	}

	/** Returns the output for a line, in quotation marks. References to groups of a regular expression are written as `${1}`. */
	#translateOutput(value: string, input: string): string {
		if (value === '-') throw new Untranslatable('a value `-` means something else here');
		const groupNames = new Set([...input.matchAll(/\(\?P?<(\w+)>/g)].map(([, name]) => name!));
		const markedValue = input.startsWith('~')
			? value.replace(/\$\{?(\w+)\}?/g, (text, name: string) =>
					/^\d$/.test(name) || groupNames.has(name) ? `\uE000${name}\uE001` : text,
				)
			: value;
		return quoteText(translateText(markedValue, this.#variables).replace(/\uE000(\w+)\uE001/g, '$${$1}'));
	}
}

const MAP_FLAGS: ReadonlySet<string> = new Set(['hostnames', 'volatile']);
