/** Collects the lines of the Configfile that an import writes, its tests, and what had no counterpart. */
import type { NginxDirective } from './nginx-parser.ts';

/** A directive that became a comment, with the reason. */
export interface KeptDirective {
	readonly directive: string;
	readonly file: string;
	readonly line: number;
	readonly reason: string;
}

/** The Configfile under construction. */
export class ConfigfileWriter {
	readonly kept: KeptDirective[] = [];
	translated = 0;
	readonly #lines: string[] = [];
	readonly #tests: string[] = [];
	readonly #counted = new Set<NginxDirective>();
	#depth = 0;
	#names = 0;

	/** Writes a line at the current depth. */
	line(text: string): void {
		this.#lines.push(text === '' ? '' : `${'\t'.repeat(this.#depth)}${text}`);
	}

	/** Writes a block. */
	block(head: string, content: () => void): void {
		this.line(`${head} {`);
		this.#depth++;
		content();
		this.#depth--;
		this.line('}');
	}

	/** Returns a name for a matcher that no other has. */
	unusedName(kind: string): string {
		return `${kind}${++this.#names}`;
	}

	/** Counts a directive as translated. A directive that several sites or locations inherit counts once. */
	count(directive: NginxDirective): void {
		if (this.#counted.has(directive)) return;
		this.#counted.add(directive);
		this.translated++;
	}

	/** Writes a directive and everything in its block as a comment with the reason. */
	keep(directive: NginxDirective, reason: string): void {
		const written = directive.block ? `${directive.text} { … }` : `${directive.text};`;
		this.line(`# nginx: ${written.replace(/[\r\n]+/g, ' ')} -- ${reason}`);
		if (this.#counted.has(directive)) return;
		this.#record(directive, reason);
		const inside = (one: NginxDirective): void => {
			this.line(`#   ${one.text}${one.block ? ' { … }' : ';'}`);
			this.#record(one, reason);
			for (const inner of one.block ?? []) inside(inner);
		};
		for (const one of directive.block ?? []) inside(one);
	}

	/** Writes a comment about a directive that was counted as translated, and counts it as kept instead. */
	differs(directive: NginxDirective, reason: string): void {
		if (this.#counted.delete(directive)) this.translated--;
		this.keep(directive, reason);
	}

	/** Writes a comment for each directive that nothing has counted or kept, so that none is dropped silently. */
	keepUnused(directives: readonly NginxDirective[]): void {
		for (const one of directives) {
			if (!this.#counted.has(one))
				this.keep(one, `line ${lineOf(one)} of ${one.span.source.name}: nothing here uses it`);
			else if (one.block) this.keepUnused(one.block);
		}
	}

	#record(directive: NginxDirective, reason: string): void {
		this.#counted.add(directive);
		const { name: file } = directive.span.source;
		this.kept.push({ directive: directive.text, file, line: lineOf(directive), reason });
	}

	/** Adds a test of one request. */
	test(name: string, lines: readonly string[]): void {
		this.#tests.push(`test ${word(name)} {`, ...lines.map(text => `\t${text}`), '}', '');
	}

	/** Returns the whole text. */
	text(): string {
		const lines = [...this.#lines, ...(this.#tests.length > 0 ? ['', ...this.#tests] : [])];
		return `${lines
			.join('\n')
			.replace(/\n{3,}/g, '\n\n')
			.trim()}\n`;
	}
}

function lineOf({ span }: NginxDirective): number {
	return span.source.position(span.start).line;
}

/** Returns a text as one word of a Configfile. Braces in it are placeholders already. */
export function word(text: string): string {
	if (text !== '' && /^[^\s"`#\\]+$/.test(text) && text !== '{' && text !== '}') return text;
	if (!text.includes('`')) return `\`${text}\``;
	return `"${text.replace(/["\\]/g, '\\$&')}"`;
}
