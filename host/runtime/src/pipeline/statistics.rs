//! What a driver's compiler tells of a pipeline: registers, spills, shared memory, whatever it counts.

use crate::{Result, device::Device};
use ash::vk;

/// A number that the driver's compiler tells, under its own name.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Figure {
    /// As the driver calls it: `Register Count`.
    pub name: String,
    /// Its value; 1 for what is true.
    pub value: f64,
}

/// A shader of a plan as the driver compiled it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Compiled {
    /// Name of the file in the pack.
    pub file: String,
    /// Invocations of a subgroup that it was compiled for; 0 where the driver does not say.
    pub subgroup_size: u32,
    /// In the driver's order.
    pub figures: Vec<Figure>,
}

/// The most figures of a pipeline that are read.
const MOST: u32 = 256;

/// What the driver tells of a pipeline that was made with `CAPTURE_STATISTICS`.
pub(super) fn read(device: &Device, pipeline: vk::Pipeline) -> Result<(u32, Vec<Figure>)> {
    let _inside = device.enter()?;
    let fns = &device.vk.fns().khr_pipeline_executable_properties;
    let of = vk::PipelineInfoKHR::default().pipeline(pipeline);
    let mut executables = Vec::new();
    let mut count = 0;
    // SAFETY: the device has the extension, the pipeline is alive, and the array has as many structs as are asked for.
    unsafe {
        let list = fns.get_pipeline_executable_properties_khr;
        let code = list(device.handle(), &of, &mut count, std::ptr::null_mut());
        device.check("vkGetPipelineExecutablePropertiesKHR", code)?;
        count = count.min(MOST);
        executables.resize(
            count as usize,
            vk::PipelineExecutablePropertiesKHR::default(),
        );
        let code = list(device.handle(), &of, &mut count, executables.as_mut_ptr());
        device.check("vkGetPipelineExecutablePropertiesKHR", complete(code))?;
    }
    executables.truncate(count as usize);
    let subgroup_size = executables.first().map_or(0, |first| first.subgroup_size);
    let mut figures = Vec::new();
    for index in 0..executables.len() as u32 {
        let of = vk::PipelineExecutableInfoKHR::default()
            .pipeline(pipeline)
            .executable_index(index);
        let mut all = Vec::new();
        let mut count = 0;
        // SAFETY: as above; the pipeline was made to be asked this.
        unsafe {
            let list = fns.get_pipeline_executable_statistics_khr;
            let code = list(device.handle(), &of, &mut count, std::ptr::null_mut());
            device.check("vkGetPipelineExecutableStatisticsKHR", code)?;
            count = count.min(MOST);
            all.resize(
                count as usize,
                vk::PipelineExecutableStatisticKHR::default(),
            );
            let code = list(device.handle(), &of, &mut count, all.as_mut_ptr());
            device.check("vkGetPipelineExecutableStatisticsKHR", complete(code))?;
        }
        all.truncate(count as usize);
        figures.extend(all.iter().map(figure));
    }
    Ok((subgroup_size, figures))
}

/// A list that was cut off is as good.
fn complete(code: vk::Result) -> vk::Result {
    match code {
        vk::Result::INCOMPLETE => vk::Result::SUCCESS,
        code => code,
    }
}

fn figure(own: &vk::PipelineExecutableStatisticKHR<'_>) -> Figure {
    use vk::PipelineExecutableStatisticFormatKHR as Format;
    let name = own.name_as_c_str().map(|name| name.to_string_lossy());
    let visible = |name: &str| name.chars().filter(|c| !c.is_control()).collect();
    // SAFETY: the format says which of the fields the driver wrote; all are plain numbers of as many bytes or fewer.
    let value = unsafe {
        match own.format {
            Format::BOOL32 => f64::from(u8::from(own.value.b32 != 0)),
            Format::INT64 => own.value.i64 as f64,
            Format::UINT64 => own.value.u64 as f64,
            Format::FLOAT64 => own.value.f64,
            _ => f64::NAN,
        }
    };
    Figure {
        name: name.map_or_else(|_| "without a name".to_owned(), |name| visible(&name)),
        value,
    }
}

impl std::fmt::Display for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file)?;
        if self.subgroup_size != 0 {
            write!(f, "  subgroup size {}", self.subgroup_size)?;
        }
        for Figure { name, value } in &self.figures {
            write!(f, "  {name} {value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_by_their_format() {
        use vk::PipelineExecutableStatisticFormatKHR as Format;
        let of = |format, value| {
            let own = vk::PipelineExecutableStatisticKHR::default()
                .name(c"Register\nCount")
                .unwrap();
            figure(&vk::PipelineExecutableStatisticKHR {
                format,
                value,
                ..own
            })
        };
        let value = |value| vk::PipelineExecutableStatisticValueKHR { u64: value };
        let registers = of(Format::UINT64, value(202));
        assert_eq!(
            (registers.name.as_str(), registers.value),
            ("RegisterCount", 202.0)
        );
        assert_eq!(of(Format::INT64, value(u64::MAX)).value, -1.0);
        assert_eq!(of(Format::FLOAT64, value(1.5f64.to_bits())).value, 1.5);
        assert_eq!(of(Format::BOOL32, value(1)).value, 1.0);
        assert!(of(Format::from_raw(9), value(1)).value.is_nan());
        let compiled = Compiled {
            file: "k.comp".to_owned(),
            subgroup_size: 32,
            figures: vec![registers],
        };
        assert_eq!(
            compiled.to_string(),
            "k.comp  subgroup size 32  RegisterCount 202"
        );
    }
}
