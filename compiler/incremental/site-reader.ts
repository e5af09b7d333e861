/** Parses pieces that consist of a single, independent site. Such a piece is parsed only when it is lowered. */

import type { Dialect } from '../dialects/dialect.ts';
import type { Reader } from '../source/reader.ts';
import type { SiteBlock } from '../syntax/ast.ts';
import { Expander } from '../syntax/expander.ts';
import { ExpansionReport } from '../syntax/expansion-report.ts';
import { FileStructure } from '../syntax/file-structure.ts';
import { mainFrame } from '../syntax/frame.ts';
import { Importer } from '../syntax/importer.ts';
import type { TextPiece } from '../syntax/text-piece.ts';

/** Reads the sites of pieces that contain nothing but a site. */
export class SiteReader {
	readonly #dialect: Dialect;
	readonly #reader: Reader;
	readonly #directives: ReadonlySet<string>;
	#structure: FileStructure | undefined;
	#importer: Importer | undefined;
	#hasReported = false;

	constructor(dialect: Dialect, reader: Reader, directives: ReadonlySet<string>) {
		this.#dialect = dialect;
		this.#reader = reader;
		this.#directives = directives;
	}

	/** Returns the site of a piece; undefined if the piece contains anything but one site, or a mistake that must be reported. */
	readSite(piece: TextPiece): SiteBlock | undefined {
		this.#hasReported = false;
		if (!this.#structure || !this.#importer) {
			const report = new ExpansionReport(this.#dialect, () => {
				this.#hasReported = true;
			});
			this.#importer = new Importer(report, this.#reader);
			this.#structure = new FileStructure(
				report,
				new Expander(report, this.#importer),
				this.#importer,
				this.#directives,
			);
		}
		const structure = this.#structure;
		const { lines, source, isPlain, hasMistakes } = piece.read(this.#importer.env, () => {});
		piece.release();
		if (isPlain && !hasMistakes && !lines.some(line => line.needsExpansion)) {
			structure.addLines(lines, mainFrame(source));
			const site = structure.sites[0]?.block;
			if (site && !this.#hasReported && structure.isBetweenBlocks && structure.size === 1) {
				structure.forgetSites();
				return site;
			}
		}
		this.#structure = undefined;
		return undefined;
	}
}
