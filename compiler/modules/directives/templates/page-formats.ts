/** The formats that pages convert with libraries: Markdown, YAML and TOML. Each library is loaded on first use. */
import { FunctionError, Suspension } from '../../templates/template-error.ts';
import type { MarkdownRenderer } from './page-markdown.ts';
import type { FrontMatterParser } from './page-texts.ts';

/** Maximum number of characters of Markdown to convert: about a second of work in the worst case. */
const MAX_MARKDOWN_CHARACTERS = 256 * 1024;
/** Maximum number of characters in the cache of converted Markdown, counting both the sources and the HTML. */
const MAX_CACHED_CHARACTERS = 4 * 1024 * 1024;

/** The converters of one `templates` step, with their cache. */
export class PageFormats {
	#renderMarkdown: MarkdownRenderer | undefined;
	#parseYaml: FrontMatterParser | undefined;
	#parseToml: FrontMatterParser | undefined;
	/** HTML by Markdown source, least recently used first. */
	readonly #htmlBySource = new Map<string, string>();
	#cachedCharacters = 0;

	/** Converts Markdown to HTML. Throws FunctionError, or Suspension while the library is loading. */
	markdown(text: string): string {
		const cachedHtml = this.#htmlBySource.get(text);
		if (cachedHtml !== undefined) {
			this.#htmlBySource.delete(text);
			this.#htmlBySource.set(text, cachedHtml);
			return cachedHtml;
		}
		if (text.length > MAX_MARKDOWN_CHARACTERS)
			throw new FunctionError(`a text has more than ${MAX_MARKDOWN_CHARACTERS} characters`);
		if (!this.#renderMarkdown) {
			throw new Suspension(
				import('./page-markdown.ts').then(({ createMarkdownRenderer }) => {
					this.#renderMarkdown = createMarkdownRenderer();
				}),
			);
		}
		const html = this.#renderMarkdown(text);
		this.#cacheHtml(text, html);
		return html;
	}

	/** Parses YAML front matter. Throws Error, or Suspension while the library is loading. */
	readonly yaml: FrontMatterParser = text => {
		if (this.#parseYaml) return this.#parseYaml(text);
		throw new Suspension(
			import('./front-matter-formats.ts').then(({ parseYaml }) => {
				this.#parseYaml = parseYaml;
			}),
		);
	};

	/** Parses TOML front matter. Throws Error, or Suspension while the library is loading. */
	readonly toml: FrontMatterParser = text => {
		if (this.#parseToml) return this.#parseToml(text);
		throw new Suspension(
			import('./front-matter-formats.ts').then(({ parseToml }) => {
				this.#parseToml = parseToml;
			}),
		);
	};

	#cacheHtml(source: string, html: string): void {
		this.#htmlBySource.set(source, html);
		this.#cachedCharacters += source.length + html.length;
		for (const [oldestText, oldestHtml] of this.#htmlBySource) {
			if (this.#cachedCharacters <= MAX_CACHED_CHARACTERS) break;
			this.#htmlBySource.delete(oldestText);
			this.#cachedCharacters -= oldestText.length + oldestHtml.length;
		}
	}
}
