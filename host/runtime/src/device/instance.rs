//! The Vulkan instance, with the validation layers on request.

use crate::{Error, Kind, Result, stderr};
use parking_lot::Mutex;
use std::sync::Arc;
use vulkano::{
    LoadingError, Validated, Version, VulkanError, VulkanLibrary,
    instance::{
        Instance, InstanceCreateFlags, InstanceCreateInfo, InstanceExtensions,
        debug::{
            DebugUtilsMessageSeverity, DebugUtilsMessageType, DebugUtilsMessenger,
            DebugUtilsMessengerCallback, DebugUtilsMessengerCreateInfo,
        },
    },
    library::DynamicLibraryLoader,
};

pub(super) const INSTALL: &str = "install a Vulkan loader and a driver (Debian: apt install libvulkan1 mesa-vulkan-drivers, \
    whose lavapipe needs no GPU; FreeBSD: pkg install vulkan-loader mesa-dri; macOS: brew install vulkan-loader molten-vk)";

const VALIDATION_LAYER: &str = "VK_LAYER_KHRONOS_validation";

/// Where package managers put a loader, or else a driver that does without, on a system that looks there for no library that is named
/// alone.
const ELSEWHERE: &[&str] = if cfg!(target_os = "macos") {
    &[
        "/opt/homebrew/lib/libvulkan.1.dylib",
        "/opt/local/lib/libvulkan.1.dylib",
        "/opt/homebrew/lib/libMoltenVK.dylib",
    ]
} else {
    &[]
};

/// Messages of the validation layers since the process started.
static VALIDATION: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What the validation layers reported so far in this process.
pub fn validation_messages() -> Vec<String> {
    VALIDATION.lock().clone()
}

/// The instances of this process, without validation and with it, and who listens to the latter. They are never destroyed: with
/// its last instance a loader unloads the drivers, and NVIDIA's does not bear being loaded anew.
static INSTANCES: Mutex<[Option<Kept>; 2]> = Mutex::new([None, None]);

type Kept = (Arc<Instance>, Option<DebugUtilsMessenger>);

pub(super) fn instance(validation: bool) -> Result<Arc<Instance>> {
    let kept = &mut INSTANCES.lock()[usize::from(validation)];
    if let Some((instance, _)) = kept {
        return Ok(instance.clone());
    }
    let instance = create(validation)?;
    // Those of the instance itself hear only how it is made.
    let listener = validation.then(|| DebugUtilsMessenger::new(instance.clone(), messenger()));
    let listener = listener
        .transpose()
        .map_err(|e| no_device(format!("nobody can listen to the validation layers: {e}")))?;
    *kept = Some((instance.clone(), listener));
    Ok(instance)
}

fn create(validation: bool) -> Result<Arc<Instance>> {
    let library = library(VulkanLibrary::new(), ELSEWHERE)
        .map_err(|e| no_device(format!("no Vulkan loader was found ({e}); {INSTALL}")))?;
    let supported = *library.supported_extensions();
    let portability = supported.khr_portability_enumeration;
    let mut layers = Vec::new();
    if validation {
        let name = VALIDATION_LAYER;
        let known = library
            .layer_properties()
            .is_ok_and(|mut all| all.any(|l| l.name() == name));
        if !known || !supported.ext_debug_utils {
            return Err(no_device(format!(
                "validation was asked for, but {name} is not installed (Debian: apt install vulkan-validationlayers)"
            )));
        }
        layers.push(name.to_owned());
    }
    Instance::new(
        library,
        InstanceCreateInfo {
            flags: if portability {
                InstanceCreateFlags::ENUMERATE_PORTABILITY
            } else {
                InstanceCreateFlags::empty()
            },
            application_name: Some("nx_vulkan".to_owned()),
            max_api_version: Some(Version::V1_3),
            enabled_extensions: InstanceExtensions {
                khr_portability_enumeration: portability,
                ext_debug_utils: validation,
                ..InstanceExtensions::empty()
            },
            debug_utils_messengers: if validation {
                vec![messenger()]
            } else {
                vec![]
            },
            enabled_layers: layers,
            ..Default::default()
        },
    )
    .map_err(|error| {
        let named = |name: &str| Some(format!("{name}={}", std::env::var(name).ok()?));
        no_device(no_driver(
            &error,
            DRIVERS.iter().find_map(|name| named(name)),
        ))
    })
}

/// Variables that name the files of drivers which a loader looks at, and at no others.
const DRIVERS: [&str; 2] = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"];

/// What an instance that cannot be made is told as.
fn no_driver(error: &Validated<VulkanError>, named: Option<String>) -> String {
    let why = match error {
        Validated::Error(VulkanError::IncompatibleDriver) => String::new(),
        Validated::Error(error) => format!(" ({error})"),
        Validated::ValidationError(error) => format!(" ({error})"),
    };
    let named = named.map_or(String::new(), |named| {
        format!(" among those that {named} names")
    });
    format!("no Vulkan driver was found{named}{why}; {INSTALL}")
}

/// What was found, or the first that there is of other files.
fn library(
    found: std::result::Result<Arc<VulkanLibrary>, LoadingError>,
    others: &[&str],
) -> std::result::Result<Arc<VulkanLibrary>, LoadingError> {
    let load = |path: &&str| {
        // SAFETY: it is a Vulkan loader or a driver, whatever else lies there being as trusted as where the system looks itself.
        let loader = unsafe { DynamicLibraryLoader::new(path) };
        loader.and_then(VulkanLibrary::with_loader).ok()
    };
    found.or_else(|error| others.iter().find_map(load).ok_or(error))
}

/// The version of Vulkan that the layers between an instance and its drivers know; without layers any.
pub(super) fn layers(instance: &Instance) -> Version {
    let any = Version {
        major: u32::MAX,
        ..Version::V1_0
    };
    if instance.enabled_layers().is_empty() {
        return any;
    }
    let found = instance.library().layer_properties().ok();
    let found = found.and_then(|mut all| all.find(|layer| layer.name() == VALIDATION_LAYER));
    found.map_or(Version::V1_0, |layer| layer.vulkan_version())
}

pub(super) fn no_device(message: String) -> Error {
    Error::new(Kind::NoDevice, message)
}

fn messenger() -> DebugUtilsMessengerCreateInfo {
    // SAFETY: the callback makes no Vulkan call.
    let callback = unsafe {
        DebugUtilsMessengerCallback::new(|severity, _kind, data| {
            let level = match severity.intersects(DebugUtilsMessageSeverity::ERROR) {
                true => log::Level::Error,
                false => log::Level::Warn,
            };
            log::log!(target: stderr::VALIDATION, level, "{}", data.message);
            VALIDATION.lock().push(data.message.to_owned());
        })
    };
    DebugUtilsMessengerCreateInfo {
        message_severity: DebugUtilsMessageSeverity::ERROR | DebugUtilsMessageSeverity::WARNING,
        message_type: DebugUtilsMessageType::VALIDATION | DebugUtilsMessageType::PERFORMANCE,
        ..DebugUtilsMessengerCreateInfo::user_callback(callback)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ash::vk;
    use vulkano::VulkanObject as _;

    #[test]
    fn a_loader_that_lies_elsewhere_is_found() {
        // SAFETY: there is no such file.
        let none = || {
            unsafe { DynamicLibraryLoader::new("/nowhere/libvulkan.so") }.map(|_| unreachable!())
        };
        let own = if cfg!(target_os = "macos") {
            "libvulkan.1.dylib"
        } else {
            "libvulkan.so.1"
        };
        assert!(library(none(), &["/nowhere/libvulkan.so.1", own]).is_ok());
        assert!(library(none(), &["/nowhere/libvulkan.so.1"]).is_err());
    }

    #[test]
    fn a_missing_driver_is_told_with_who_named_the_drivers() {
        let error = |error: VulkanError| Validated::Error(error);
        let named = Some("VK_DRIVER_FILES=/nowhere".to_owned());
        let none = no_driver(&error(VulkanError::IncompatibleDriver), None);
        assert!(
            none.starts_with("no Vulkan driver was found; install"),
            "{none}"
        );
        let none = no_driver(&error(VulkanError::IncompatibleDriver), named);
        assert!(
            none.contains("found among those that VK_DRIVER_FILES=/nowhere names; install"),
            "{none}"
        );
        let other = no_driver(&error(VulkanError::OutOfHostMemory), None);
        assert!(
            other.contains("found (a host memory allocation has failed)"),
            "{other}"
        );
    }

    #[test]
    fn what_the_layers_say_is_heard_at_any_time() {
        let instance = instance(true).expect("a Vulkan loader and the validation layers");
        let data = vk::DebugUtilsMessengerCallbackDataEXT::default().message(c"a word in between");
        let submit = instance
            .fns()
            .ext_debug_utils
            .submit_debug_utils_message_ext;
        // SAFETY: the data outlive the call.
        unsafe {
            submit(
                instance.handle(),
                vk::DebugUtilsMessageSeverityFlagsEXT::ERROR,
                vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION,
                &data,
            );
        }
        assert_eq!(validation_messages(), ["a word in between"]);
        VALIDATION.lock().clear();
    }
}
