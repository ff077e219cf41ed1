//! Opens folders of object stores by URL.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use futures::TryStreamExt as _;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _, ObjectStoreScheme};
use url::Url;

use crate::error::StoredError;
use crate::object_name::ObjectName;

/// Prefixes of the environment variables that configure each kind of store.
const AWS_PREFIX: &str = "AWS_";
const AZURE_PREFIX: &str = "AZURE_";
const GOOGLE_PREFIX: &str = "GOOGLE_";
const NO_PREFIX: &str = "";

/// Folder of an object store.
#[derive(Debug, Clone)]
pub struct ObjectStoreFolder {
    objects: Arc<dyn ObjectStore>,
    folder: Path,
    url: String,
    variables: &'static str,
}

/// Retries of requests that a store does not answer, or answers with an internal error.
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp"))]
fn retries() -> object_store::RetryConfig {
    object_store::RetryConfig {
        max_retries: 5,
        retry_timeout: std::time::Duration::from_secs(30),
        ..object_store::RetryConfig::default()
    }
}

/// Builds a store of one kind, with the options that the kind knows.
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp"))]
macro_rules! built {
    ($builder:ty, $url:expr, $options:expr) => {{
        let builder = <$builder>::new().with_url($url.as_str()).with_retry(retries());
        let builder = $options.fold(builder, |builder, (name, value)| {
            match name.to_ascii_lowercase().parse() {
                Ok(key) => builder.with_config(key, value),
                Err(_) => builder,
            }
        });
        Ok(Arc::new(builder.build()?))
    }};
}

fn open_objects(
    scheme: &ObjectStoreScheme,
    url: &Url,
    options: impl Iterator<Item = (String, String)>,
) -> Result<Arc<dyn ObjectStore>, object_store::Error> {
    match scheme {
        #[cfg(feature = "aws")]
        ObjectStoreScheme::AmazonS3 => built!(object_store::aws::AmazonS3Builder, url, options),
        #[cfg(feature = "azure")]
        ObjectStoreScheme::MicrosoftAzure => {
            built!(object_store::azure::MicrosoftAzureBuilder, url, options)
        }
        #[cfg(feature = "gcp")]
        ObjectStoreScheme::GoogleCloudStorage => {
            built!(object_store::gcp::GoogleCloudStorageBuilder, url, options)
        }
        _ => Ok(Arc::new(LocalFileSystem::new())),
    }
}

impl fmt::Display for ObjectStoreFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

impl ObjectStoreFolder {
    /// Opens the folder of a URL. `environment` has the variables that configure the store.
    ///
    /// # Errors
    /// [`StoredError::Url`], [`StoredError::NotBuiltIn`].
    pub fn open(
        text: &str,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, StoredError> {
        let wrong = |reason: String| StoredError::Url { text: luc_units::plain(text), reason };
        let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
        if url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            let reason = "it has a password, a query or a fragment".to_owned();
            return Err(wrong(reason));
        }
        let (scheme, folder) =
            ObjectStoreScheme::parse(&url).map_err(|error| wrong(error.to_string()))?;
        let (variables, feature, is_built_in) = match scheme {
            ObjectStoreScheme::Local => (NO_PREFIX, "", true),
            ObjectStoreScheme::AmazonS3 => (AWS_PREFIX, "aws", cfg!(feature = "aws")),
            ObjectStoreScheme::MicrosoftAzure => (AZURE_PREFIX, "azure", cfg!(feature = "azure")),
            ObjectStoreScheme::GoogleCloudStorage => (GOOGLE_PREFIX, "gcp", cfg!(feature = "gcp")),
            _ => {
                return Err(wrong("it is no kind of store that is known here".to_owned()));
            }
        };
        if !is_built_in {
            return Err(StoredError::NotBuiltIn { text: luc_units::plain(text), feature });
        }
        // Other variables may have the same names as a store's options.
        let options = environment
            .into_iter()
            .filter(|(name, _)| !variables.is_empty() && name.starts_with(variables));
        let objects =
            open_objects(&scheme, &url, options).map_err(|error| wrong(describe(&error)))?;
        Ok(Self { objects, folder, url: text.trim_end_matches('/').to_owned(), variables })
    }

    /// Folder of a host in this one.
    #[must_use]
    pub fn of_host(&self, host: &str) -> Self {
        Self {
            folder: self.folder.clone().join(host),
            url: format!("{}/{host}", self.url),
            ..self.clone()
        }
    }

    /// Lists the segments in this folder, in no order. Other objects are left out.
    pub(crate) async fn segments(&self) -> Result<Vec<ObjectName>, StoredError> {
        let listed = self.objects.list_with_delimiter(Some(&self.folder)).await;
        let listed = listed.map_err(|error| self.refused(&error))?;
        let name = |meta: &ObjectMeta| meta.location.filename()?.parse().ok();
        Ok(listed.objects.iter().filter_map(name).collect())
    }

    /// Lists all segments one folder further down, each with the folder's name and its size.
    pub(crate) async fn segments_of_hosts(
        &self,
    ) -> Result<Vec<(String, ObjectName, u64)>, StoredError> {
        let listed: Vec<ObjectMeta> = self
            .objects
            .list(Some(&self.folder))
            .try_collect()
            .await
            .map_err(|error| self.refused(&error))?;
        let of_host = |meta: &ObjectMeta| {
            let mut parts = meta.location.prefix_match(&self.folder)?;
            let (host, name) = (parts.next()?, parts.next()?);
            let name = name.as_ref().parse().ok()?;
            let is_below = parts.next().is_some();
            (!is_below).then(|| (host.as_ref().to_owned(), name, meta.size))
        };
        Ok(listed.iter().filter_map(of_host).collect())
    }

    /// Path of a segment's object.
    pub(crate) fn place(&self, name: ObjectName) -> Path {
        self.folder.clone().join(name.to_string())
    }

    pub(crate) fn objects(&self) -> &Arc<dyn ObjectStore> {
        &self.objects
    }

    /// Gets a segment's object as a stream.
    pub(crate) async fn get(
        &self,
        name: ObjectName,
    ) -> Result<object_store::GetResult, StoredError> {
        self.objects.get(&self.place(name)).await.map_err(|error| self.refused(&error))
    }

    /// Turns an error of the store into one with the next step.
    pub(crate) fn refused(&self, error: &(dyn Error + 'static)) -> StoredError {
        let next = match self.variables {
            NO_PREFIX => "check the directory, its permissions and the space left".to_owned(),
            prefix => format!(
                "see that the bucket exists and the variables {prefix}... of the environment are right"
            ),
        };
        StoredError::Refused { url: self.url.clone(), reason: describe(error), next }
    }
}

/// Describes an error in one line. The first cause says most, and what wraps it says where.
fn describe(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    luc_units::plain(words.join(" ").trim_end_matches(['.', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(text: &str) -> Result<ObjectStoreFolder, StoredError> {
        ObjectStoreFolder::open(text, [])
    }

    #[test]
    fn a_url_names_a_folder() {
        let store = opened("file:///tmp/a%20b/rings/").expect("a directory");
        assert_eq!(store.folder.as_ref(), "tmp/a b/rings");
        let host = store.of_host("web");
        assert_eq!(host.folder.as_ref(), "tmp/a b/rings/web");
        assert_eq!(host.to_string(), "file:///tmp/a%20b/rings/web");
        for wrong in [
            "",
            "/rings",
            "rings",
            "ftp://host/rings",
            "memory:///",
            "http://host/rings",
            "file://host/rings",
            "s3://user:secret@bucket/rings",
            "file:///rings?a=b",
        ] {
            let refused = opened(wrong);
            assert!(matches!(refused, Err(StoredError::Url { .. })), "{wrong}: {refused:?}");
        }
    }

    #[cfg(not(feature = "gcp"))]
    #[test]
    fn what_is_not_built_in_is_said() {
        let refused = opened("gs://bucket/rings").expect_err("not built in");
        assert!(refused.to_string().contains("feature gcp"), "{refused}");
    }
}
