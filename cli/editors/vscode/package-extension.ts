/**
 * `npm run build:vscode`: packages the extension of Visual Studio Code. Install it by `code --install-extension dist/svc.vsix`.
 *
 * Usage: node cli/editors/vscode/package-extension.ts [--output dist/svc.vsix]
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { zipSync } from 'fflate';
import { escapeHtml } from '../../../compiler/exchange/html-text.ts';

const root = path.resolve(import.meta.dirname, '../../..');
/** Files of this folder that are packaged as they are. */
const COPIED_FILES = [
	'README.md',
	'language-configuration.json',
	'syntaxes/configfile.tmLanguage.json',
	'syntaxes/caddyfile.tmLanguage.json',
];
/** The time of all files in the package, so that packages of the same sources are equal. */
const FILE_TIME = new Date(2026, 0, 1);

/** The manifest of the extension, limited to what packaging needs. */
interface Manifest {
	readonly name: string;
	readonly displayName: string;
	readonly description: string;
	readonly publisher: string;
	readonly version: string;
	readonly main: string;
	readonly engines: { readonly vscode: string };
	readonly categories: readonly string[];
	readonly keywords: readonly string[];
	readonly extensionKind: readonly string[];
}

function read(...names: readonly string[]): string {
	return readFileSync(path.join(...names), 'utf8');
}

/** Bundles the extension to one script that needs nothing but Node and the editor. */
async function bundle(entry: string): Promise<string> {
	const { outputFiles } = await build({
		absWorkingDir: root,
		entryPoints: [path.join(import.meta.dirname, entry)],
		bundle: true,
		write: false,
		platform: 'node',
		format: 'cjs',
		// The Node of the oldest editor that `engines` permits.
		target: 'node20',
		external: ['vscode'],
		minifySyntax: true,
		minifyWhitespace: true,
		legalComments: 'eof',
		logLevel: 'warning',
	});
	return outputFiles[0]!.text;
}

/** Returns the package manifest, which the editor and its gallery read. */
function packageManifest(manifest: Manifest): string {
	const { name, displayName, description, publisher, version, engines, categories, keywords, extensionKind } = manifest;
	const property = (id: string, value: string): string =>
		`\t\t\t<Property Id="Microsoft.VisualStudio.Code.${id}" Value="${escapeHtml(value)}" />\n`;
	const asset = (type: string, file: string): string =>
		`\t\t<Asset Type="Microsoft.VisualStudio.${type}" Path="extension/${file}" Addressable="true" />\n`;
	return `<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
	<Metadata>
		<Identity Language="en-US" Id="${name}" Version="${version}" Publisher="${publisher}" />
		<DisplayName>${escapeHtml(displayName)}</DisplayName>
		<Description xml:space="preserve">${escapeHtml(description)}</Description>
		<Tags>${escapeHtml(keywords.join(','))}</Tags>
		<Categories>${escapeHtml(categories.join(','))}</Categories>
		<GalleryFlags>Public</GalleryFlags>
		<Properties>
${property('Engine', engines.vscode)}${property('ExtensionKind', extensionKind.join(','))}		</Properties>
		<License>extension/LICENSE.txt</License>
	</Metadata>
	<Installation>
		<InstallationTarget Id="Microsoft.VisualStudio.Code" />
	</Installation>
	<Dependencies />
	<Assets>
${asset('Code.Manifest', 'package.json')}${asset('Services.Content.Details', 'README.md')}${asset('Services.Content.License', 'LICENSE.txt')}	</Assets>
</PackageManifest>
`;
}

const CONTENT_TYPES = `<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
	<Default Extension=".cjs" ContentType="application/javascript" />
	<Default Extension=".json" ContentType="application/json" />
	<Default Extension=".md" ContentType="text/markdown" />
	<Default Extension=".txt" ContentType="text/plain" />
	<Default Extension=".vsixmanifest" ContentType="text/xml" />
</Types>
`;

async function packageExtension(output: string): Promise<void> {
	const { version } = JSON.parse(read(root, 'package.json')) as { version: string };
	const { private: _, type: __, ...packageFields } = JSON.parse(read(import.meta.dirname, 'package.json'));
	const manifest: Manifest = { ...packageFields, version };
	const files: { [name: string]: string } = {
		'[Content_Types].xml': CONTENT_TYPES,
		'extension.vsixmanifest': packageManifest(manifest),
		'extension/package.json': `${JSON.stringify(manifest, undefined, '\t')}\n`,
		[path.posix.join('extension', manifest.main)]: await bundle('extension.ts'),
		'extension/LICENSE.txt': read(root, 'LICENSE'),
	};
	for (const file of COPIED_FILES) files[`extension/${file}`] = read(import.meta.dirname, file);
	const encoder = new TextEncoder();
	const entries = Object.entries(files).map(([name, text]) => [name, encoder.encode(text)] as const);
	const archive = zipSync(Object.fromEntries(entries), { level: 9, mtime: FILE_TIME });
	mkdirSync(path.dirname(output), { recursive: true });
	writeFileSync(output, archive);
	console.log(`${path.relative(process.cwd(), output)}  v${version}  ${(archive.length / 1000).toFixed(0)} KB`);
}

const { values } = parseArgs({ options: { output: { type: 'string', default: path.join(root, 'dist/svc.vsix') } } });
await packageExtension(path.resolve(values.output));
