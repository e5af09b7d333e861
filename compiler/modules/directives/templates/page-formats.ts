/** The formats that pages parse with libraries: Markdown, YAML, TOML. Each library is loaded on first use. */
import { FunctionError, Suspension } from '../../templates/template-error.ts';
import type { MarkdownRenderer } from './page-markdown.ts';
import type { FrontMatterParser } from './page-texts.ts';

/** Maximum characters of Markdown to convert: about a second of work in the worst case. */
const MAX_MARKDOWN = 256 * 1024;
/** Maximum characters of cached Markdown, including sources. */
const CACHED = 4 * 1024 * 1024;

/** The formats of one `templates` step. */
export class PageFormats {
	#markdown: MarkdownRenderer | undefined;
	#yaml: FrontMatterParser | undefined;
	#toml: FrontMatterParser | undefined;
	/** HTML by Markdown source, least recently used first. */
	readonly #rendered = new Map<string, string>();
	#renderedText = 0;

	/** Converts Markdown to HTML. Throws FunctionError, or Suspension while the library is loading. */
	markdown(text: string): string {
		const known = this.#rendered.get(text);
		if (known !== undefined) {
			this.#rendered.delete(text);
			this.#rendered.set(text, known);
			return known;
		}
		if (text.length > MAX_MARKDOWN) throw new FunctionError(`a text has more than ${MAX_MARKDOWN} characters`);
		if (!this.#markdown) {
			throw new Suspension(
				import('./page-markdown.ts').then(({ createMarkdownRenderer }) => {
					this.#markdown = createMarkdownRenderer();
				}),
			);
		}
		const html = this.#markdown(text);
		this.#keep(text, html);
		return html;
	}

	/** Parses YAML front matter. Throws Error, or Suspension while the library is loading. */
	readonly yaml: FrontMatterParser = text => {
		if (this.#yaml) return this.#yaml(text);
		throw new Suspension(
			import('./front-matter-formats.ts').then(({ parseYaml }) => {
				this.#yaml = parseYaml;
			}),
		);
	};

	/** Parses TOML front matter. Throws Error, or Suspension while the library is loading. */
	readonly toml: FrontMatterParser = text => {
		if (this.#toml) return this.#toml(text);
		throw new Suspension(
			import('./front-matter-formats.ts').then(({ parseToml }) => {
				this.#toml = parseToml;
			}),
		);
	};

	#keep(text: string, html: string): void {
		this.#rendered.set(text, html);
		this.#renderedText += text.length + html.length;
		for (const [oldest, its] of this.#rendered) {
			if (this.#renderedText <= CACHED) break;
			this.#rendered.delete(oldest);
			this.#renderedText -= oldest.length + its.length;
		}
	}
}
