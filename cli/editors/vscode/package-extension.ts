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

const repositoryFolder = path.resolve(import.meta.dirname, '../../..');
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

function readText(...names: readonly string[]): string {
	return readFileSync(path.join(...names), 'utf8');
}

/** Bundles the extension into one script that needs nothing but Node and the editor. */
async function bundleScript(entry: string): Promise<string> {
	const { outputFiles } = await build({
		absWorkingDir: repositoryFolder,
		entryPoints: [path.join(import.meta.dirname, entry)],
		bundle: true,
		write: false,
		platform: 'node',
		format: 'cjs',
		// The version of Node in the oldest editor that `engines` permits.
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
	const propertyXml = (id: string, value: string): string =>
		`\t\t\t<Property Id="Microsoft.VisualStudio.Code.${id}" Value="${escapeHtml(value)}" />\n`;
	const assetXml = (type: string, file: string): string =>
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
${propertyXml('Engine', engines.vscode)}${propertyXml('ExtensionKind', extensionKind.join(','))}		</Properties>
		<License>extension/LICENSE.txt</License>
	</Metadata>
	<Installation>
		<InstallationTarget Id="Microsoft.VisualStudio.Code" />
	</Installation>
	<Dependencies />
	<Assets>
${assetXml('Code.Manifest', 'package.json')}${assetXml('Services.Content.Details', 'README.md')}${assetXml('Services.Content.License', 'LICENSE.txt')}	</Assets>
</PackageManifest>
`;
}

const CONTENT_TYPES_XML = `<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
	<Default Extension=".cjs" ContentType="application/javascript" />
	<Default Extension=".json" ContentType="application/json" />
	<Default Extension=".md" ContentType="text/markdown" />
	<Default Extension=".txt" ContentType="text/plain" />
	<Default Extension=".vsixmanifest" ContentType="text/xml" />
</Types>
`;

async function packageExtension(outputPath: string): Promise<void> {
	const { version } = JSON.parse(readText(repositoryFolder, 'package.json')) as { version: string };
	const { private: _, type: __, ...packageFields } = JSON.parse(readText(import.meta.dirname, 'package.json'));
	const manifest: Manifest = { ...packageFields, version };
	const textsByPath: { [name: string]: string } = {
		'[Content_Types].xml': CONTENT_TYPES_XML,
		'extension.vsixmanifest': packageManifest(manifest),
		'extension/package.json': `${JSON.stringify(manifest, undefined, '\t')}\n`,
		[path.posix.join('extension', manifest.main)]: await bundleScript('extension.ts'),
		'extension/LICENSE.txt': readText(repositoryFolder, 'LICENSE'),
	};
	for (const file of COPIED_FILES) textsByPath[`extension/${file}`] = readText(import.meta.dirname, file);
	const encoder = new TextEncoder();
	const entries = Object.entries(textsByPath).map(([name, text]) => [name, encoder.encode(text)] as const);
	const archive = zipSync(Object.fromEntries(entries), { level: 9, mtime: FILE_TIME });
	mkdirSync(path.dirname(outputPath), { recursive: true });
	writeFileSync(outputPath, archive);
	console.log(`${path.relative(process.cwd(), outputPath)}  v${version}  ${(archive.length / 1000).toFixed(0)} KB`);
}

const { values } = parseArgs({
	options: { output: { type: 'string', default: path.join(repositoryFolder, 'dist/svc.vsix') } },
});
await packageExtension(path.resolve(values.output));
